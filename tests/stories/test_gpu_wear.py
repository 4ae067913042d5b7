"""GPUs that wear out or are held back: storms of corrected errors, spare rows, links that flap, the brake."""

from datetime import timedelta
from pathlib import Path

from nodeagent.client import EventKind, Verdict
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.clocks import SteppedClock
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon

SOON = """
kind = "chip"

[[counter]]
id = "nv-power-brake"
code = "NV_POWER_BRAKE"
metric = "power_brake_minutes_total"
increase = 1
time_window = "60s"

[[counter]]
id = "nv-nvlink-flapping"
code = "NV_NVLINK_FLAPPING"
metric = "nvlink_recoveries_total.*"
increase = 3
time_window = "60s"
"""
"""The shipped rules, but that they need no minutes: one minute of the brake is enough."""

HW_POWER_BRAKE_AND_CAP = 0x8C
IDLE = 0x1


def said_of(subscriber: Subscriber, code: str) -> list[tuple[EventKind, str]]:
    """The kind and the device of each event about the code, in order."""
    return [(event.kind, event.device) for event in subscriber.events if event.code == code]


async def has_no_condition(daemon: GpuDaemon) -> bool:
    return not (await daemon.status())["conditions"]


async def in_the_end(daemon: GpuDaemon) -> dict[str, str]:
    """Device -> verdict, where that is not ALLOW."""
    devices = (await daemon.status())["devices"]
    return {each["name"]: each["verdict"] for each in devices if each["verdict"] != "ALLOW"}


async def test_memory_that_corrects_without_end_or_has_no_spare_rows_gets_no_new_work(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.gpus.count_ecc("gpu0", "dram", corrected=6_000_000)
    daemon.gpus.count_ecc("gpu1", "dram", corrected=599_999)
    daemon.node.set("gpu2", "gpu_row_banks", 1, place=3)
    daemon.node.set("gpu3", "gpu_row_banks", 1, place=4)
    storm = await subscriber.raised("ECC_CORRECTED_STORM", "gpu0")
    await subscriber.raised("NV_SPARE_ROWS_LOW", "gpu2")
    await subscriber.raised("NV_SPARE_ROWS_NONE", "gpu3")

    assert storm.verdict is Verdict.NO_NEW_JOBS
    assert {key: storm.evidence[key] for key in ("metric", "part", "increase")} == {
        "metric": "ecc_corrected_total",
        "part": "dram",
        "increase": "6000000",
    }
    assert await in_the_end(daemon) == {"gpu0": "NO_NEW_JOBS", "gpu3": "NO_NEW_JOBS"}
    assert without_gap(subscriber.events)


async def test_a_power_brake_on_one_gpu_is_its_own_and_on_two_the_node_s(
    launch_gpus: LaunchGpus, follow: Follow, tmp_path: Path
) -> None:
    clock = SteppedClock(tmp_path, "BOOT")
    daemon = launch_gpus("4xH100", env=clock.env)
    daemon.tables.mkdir(exist_ok=True)
    (daemon.tables / "soon.toml").write_text(SOON)
    subscriber = await follow(daemon)
    daemon.node.set("gpu2", "gpu_clock_reasons", HW_POWER_BRAKE_AND_CAP)
    alone = await subscriber.raised("NV_POWER_BRAKE", "gpu2")
    assert await in_the_end(daemon) == {}
    daemon.node.set("gpu3", "gpu_clock_reasons", HW_POWER_BRAKE_AND_CAP)
    shared = await subscriber.raised("NV_POWER_BRAKE_NODE", "node")
    await subscriber.cleared("NV_POWER_BRAKE", "gpu3")
    (open_fault,) = (await daemon.status())["conditions"]
    assert (open_fault["device"], open_fault["code"]) == ("node", "NV_POWER_BRAKE_NODE")
    assert await in_the_end(daemon) == {"node": "NO_NEW_JOBS"}
    for gpu in ("gpu2", "gpu3"):
        daemon.node.set(gpu, "gpu_clock_reasons", IDLE)
    clock.pass_on(timedelta(minutes=2))
    await subscriber.cleared("NV_POWER_BRAKE_NODE", "node")
    await daemon.comes(lambda: has_no_condition(daemon), "an end of all conditions")

    assert alone.evidence["metric"] == "power_brake_minutes_total"
    assert (shared.evidence["devices"], shared.verdict) == ("gpu2, gpu3", Verdict.NO_NEW_JOBS)
    assert said_of(subscriber, "NV_POWER_BRAKE_NODE") == [
        (EventKind.RAISED, "node"),
        (EventKind.CLEARED, "node"),
    ]


async def test_a_link_that_flaps_is_named(launch_gpus: LaunchGpus, follow: Follow) -> None:
    daemon = launch_gpus("2xB200")
    daemon.tables.mkdir(exist_ok=True)
    (daemon.tables / "soon.toml").write_text(SOON)
    daemon.node.set("gpu0", "gpu_nvlink5_recovery_events", 505, place=14)
    subscriber = await follow(daemon)
    daemon.node.set("gpu0", "gpu_nvlink5_recovery_events", 508, place=14)
    flapping = await subscriber.raised("NV_NVLINK_FLAPPING", "gpu0")
    assert {key: flapping.evidence[key] for key in ("metric", "part", "value", "increase")} == {
        "metric": "nvlink_recoveries_total",
        "part": "14",
        "value": "508",
        "increase": "3",
    }
    assert await in_the_end(daemon) == {"gpu0": "NO_NEW_JOBS"}
