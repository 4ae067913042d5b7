"""A chip is taken out for good: a person says so, and no place is shown where there is none."""

import json

from nodeagent.client import EventKind
from tests.harness.daemon import Daemon
from tests.stories.conftest import LaunchGpus, Subscribe


async def forget(daemon: Daemon) -> tuple[int, str]:
    return await daemon.command(
        "forget", "gpu1", "--reason", "sent back", "--socket", daemon.folder / "c.sock"
    )


async def test_a_gpu_that_was_taken_out_is_forgotten_and_is_new_when_it_comes_back(
    launch_gpus: LaunchGpus, subscribe: Subscribe
) -> None:
    daemon = launch_gpus("2xH100")
    await daemon.start()
    uuid = daemon.gpus.uuid("gpu1")
    slot = daemon.node.sysfs / "bus/pci/devices" / f"{daemon.gpus.pci('gpu1')}.0"
    target = slot.readlink()
    subscriber = subscribe(daemon)
    await subscriber.follow()

    while_listed, _ = await forget(daemon)
    assert await daemon.stop() == 0
    daemon.node.take_out("gpu1")
    await daemon.start()
    await subscriber.raised("device_lost")
    while_in_its_slot, _ = await forget(daemon)
    slot.unlink()
    await subscriber.cleared("device_lost")
    taken, answer = await forget(daemon)
    ended = await subscriber.event(EventKind.NOTICE, "")
    await daemon.restart()
    names = [each["name"] for each in (await daemon.status())["devices"] if each["kind"] == "chip"]
    slot.symlink_to(target)
    daemon.node.chip("gpu1").present = 1
    await daemon.restart()
    await subscriber.follow()
    await subscriber.event(EventKind.DEVICE_SEEN, "", "gpu1")

    assert (while_listed, while_in_its_slot, taken) == (1, 1, 0)
    assert json.loads(answer) == {"device": "gpu1", "device_id": uuid, "durable": True}
    assert (ended.why.partition(": ")[2], ended.evidence["was"]) == ("sent back", uuid)
    assert names == ["gpu0"]
