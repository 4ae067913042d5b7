"""A chip is taken out while no daemon runs: the next life shows no place for work where there is none."""

from nodeagent.client import EventKind
from tests.stories.conftest import LaunchGpus, Subscribe


async def test_a_gpu_taken_out_while_no_daemon_ran_is_gone_and_those_behind_it_keep_what_they_are(
    launch_gpus: LaunchGpus, subscribe: Subscribe
) -> None:
    daemon = launch_gpus("4xH100")
    await daemon.start()
    parts = [daemon.gpus.uuid(f"gpu{index}") for index in range(4)]
    address = f"{daemon.gpus.pci('gpu1')}.0"
    subscriber = subscribe(daemon)
    await subscriber.follow()
    assert await daemon.stop() == 0

    daemon.node.take_out("gpu1")
    (daemon.node.sysfs / "bus/pci/devices" / address).unlink()
    await daemon.start()
    await subscriber.follow()
    gone = await subscriber.event(EventKind.DEVICE_GONE, "")

    assert (gone.device_id, gone.why) == (parts[1], "the driver no longer lists it")
    chips = [each for each in (await daemon.status())["devices"] if each["kind"] == "chip"]
    assert {each["id"]: (each["verdict"], each["observed"]) for each in chips} == {
        parts[0]: ("ALLOW", True),
        parts[1]: ("UNKNOWN", False),
        parts[2]: ("ALLOW", True),
        parts[3]: ("ALLOW", True),
    }
    assert {each["name"]: each["id"] for each in chips}["gpu1"] == parts[2]
