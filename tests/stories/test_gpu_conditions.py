"""What a GPU says of itself beside Xids: shown with advice, mostly no reason to take it out of service."""

import json

from nodeagent.client import EventKind, Verdict
from tests.harness.subscriber import without_gap
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

    _, shown = await daemon.command("reset", "gpu0", "--dry-run", "--socket", daemon.folder / "c.sock")
    why = "it is a virtual GPU of this guest (vGPU), and only its host can reset it"
    assert json.loads(shown)["plan"]["refused"] == f"gpu0 cannot be reset: {why}"
    assert {event.device for event in subscriber.of(EventKind.ACTION_PROPOSED)} == {"gpu1"}
    (raised,) = [event for event in subscriber.of(EventKind.RAISED) if event.device == "gpu0"]
    assert (raised.code, raised.verdict) == ("XID_154.1", Verdict.ISOLATE)


async def test_what_gpus_say_of_themselves_is_told_with_advice_and_keeps_all_of_them_in_service(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    daemon.node.set("gpu0", "gpu_inforom_corrupt", 1)
    daemon.node.set("gpu1", "gpu_c2c_link_count", 1)
    daemon.node.set("gpu1", "gpu_c2c_link_states", 0, place=0)
    subscriber = await follow(daemon)
    daemon.node.set("gpu2", "gpu_rows_uncorrected", 512)
    daemon.node.set("gpu3", "gpu_persistence_mode", 0)
    daemon.gpus.count_ecc("gpu4", "dram", uncorrected=1)
    for code, gpu in (
        ("NV_REMAP_LIMIT", "gpu2"),
        ("NV_PERSISTENCE_OFF", "gpu3"),
        ("NV_ECC_UNCORRECTED", "gpu4"),
    ):
        await subscriber.raised(code, gpu)
    status = await daemon.status()
    daemon.node.set("gpu3", "gpu_persistence_mode", 1)
    await subscriber.cleared("NV_PERSISTENCE_OFF", "gpu3")

    assert {each["device"]: (each["code"], each["level"]) for each in status["conditions"]} == {
        "gpu0": ("NV_INFOROM_CORRUPT", "SubHealthFault"),
        "gpu1": ("NV_C2C_DOWN", "SubHealthFault"),
        "gpu2": ("NV_REMAP_LIMIT", "SubHealthFault"),
        "gpu3": ("NV_PERSISTENCE_OFF", "NotHandleFault"),
        "gpu4": ("NV_ECC_UNCORRECTED", "SubHealthFault"),
    }
    assert {each["verdict"] for each in status["devices"]} == {"ALLOW"}
    explained = await daemon.explained([each["code"] for each in status["conditions"]])
    assert all(each["action"] and each["level_source"] for each in explained)
    assert without_gap(subscriber.events)
