"""What a GPU says of itself beside Xids: told with advice, and mostly no reason to take it out of service."""

import json

from nodeagent.client import EventKind, Verdict
from tests.stories.conftest import Follow, LaunchGpus

VGPU = 2


async def test_a_virtual_gpu_stays_out_of_service_and_nobody_tries_to_reset_it(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("2xH100", reset=('mode = "on"', 'announce = "90s"'))
    daemon.node.set("gpu0", "gpu_virtualization_mode", VGPU)
    subscriber = await follow(daemon)
    for gpu in ("gpu0", "gpu1"):
        daemon.gpus.set_recovery_action(gpu, 1)
    await subscriber.until(lambda _: bool(subscriber.of(EventKind.ACTION_PROPOSED)))

    _, told = await daemon.command("reset", "gpu0", "--dry-run", "--socket", daemon.folder / "c.sock")
    why = "it is a virtual GPU of this guest (vGPU), and only its host can reset it"
    assert json.loads(told)["rehearsal"]["refused"] == f"gpu0 cannot be reset: {why}"
    assert {event.device for event in subscriber.of(EventKind.ACTION_PROPOSED)} == {"gpu1"}
    (raised,) = [event for event in subscriber.of(EventKind.RAISED) if event.device == "gpu0"]
    assert (raised.code, raised.verdict) == ("XID_154.1", Verdict.ISOLATE)
