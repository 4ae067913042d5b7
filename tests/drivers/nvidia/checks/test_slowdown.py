"""What slows a GPU down: heat and the power brake apart, each by its minutes; and what is no fault at all."""

import pytest

from nodeagent.core.model import ActiveSet, DeviceSeen, Kind, Verdict
from nodeagent.daemon.sources.telemetry_edges import RuleReadings as Edges
from nodeagent.drivers.nvidia.calls import Calls, Readings
from nodeagent.drivers.nvidia.checks.slowdown import SlowdownMinutes
from nodeagent.drivers.nvidia.checks.telemetry import THROTTLE
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

HEAT, HEAT_OF_DRIVER, BRAKE, ANY = (
    "thermal_slowdown_minutes_total.hw_thermal",
    "thermal_slowdown_minutes_total.sw_thermal",
    "power_brake_minutes_total",
    "hw_slowdown_minutes_total",
)
NO_FAULT = ("idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost", "display")


def counted(seen: list[tuple[int, int | None]]) -> dict[str, float]:
    """The minutes by reading, after these bits were seen at these seconds."""
    minutes, values = SlowdownMinutes(), dict[str, float]()
    for second, bits in seen:
        minutes.see(bits, float(second), Readings(Calls(None), values))
    return {name: value for name, value in values.items() if value}


def minutes_of(judge: Judge, gpu: str, reason: str, count: int) -> None:
    """The GPU tells that it was slowed down so in so many minutes, one after the other."""
    edges = Edges("nvidia", judge.catalog.threshold, judge.catalog.counter)
    seen = DeviceSeen(source="nvidia", device=gpu, kind=Kind.CHIP, vendor="nvidia", identity=f"GPU-{gpu}")
    judge.take(seen)
    judge.take(ActiveSet(source="nvidia", device=gpu, codes=(), begun_ns=judge.now_ns, complete=True))
    for minute in range(count + 1):
        for given in edges.take(gpu, {reason: float(minute)}, judge.now_ns):
            judge.take(given)
        judge.skip(60)


def test_a_minute_counts_once_however_often_it_is_seen() -> None:
    seen: list[tuple[int, int | None]] = [(second, 0x88) for second in range(0, 330, 10)]
    assert counted([*seen, (590, 0x1), (600, None)]) == {BRAKE: 6, ANY: 6}


@pytest.mark.parametrize("reason", NO_FAULT)
def test_what_is_no_fault_counts_no_minute(reason: str) -> None:
    assert counted([(60 * minute, THROTTLE[reason]) for minute in range(10)]) == {}


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0x48, {HEAT: 1, ANY: 1}),
        (0x20, {HEAT_OF_DRIVER: 1}),
        (0x60, {HEAT: 1, HEAT_OF_DRIVER: 1, ANY: 1}),
        (0x8C, {BRAKE: 1, ANY: 1}),
        (0xE8, {HEAT: 1, HEAT_OF_DRIVER: 1, BRAKE: 1, ANY: 1}),
    ],
)
def test_each_reason_counts_for_itself(bits: int, expected: dict[str, float]) -> None:
    assert counted([(0, bits)]) == expected


def test_heat_names_who_slows_the_gpu_down(judge: Judge) -> None:
    minutes_of(judge, "gpu0", HEAT_OF_DRIVER, 6)
    assert judge.open("gpu0") == {"NV_SLOWDOWN": "SubHealthFault"}
    (slowdown,) = judge.engine.view().conditions
    assert (slowdown.evidence["metric"], slowdown.evidence["part"]) == (
        "thermal_slowdown_minutes_total",
        "sw_thermal",
    )


def test_a_brake_on_one_gpu_is_that_gpu_s_and_keeps_nothing_away(judge: Judge) -> None:
    minutes_of(judge, "gpu0", BRAKE, 6)
    assert judge.open("gpu0") == {"NV_POWER_BRAKE": "SubHealthFault"}
    assert judge.view("gpu0").verdict is judge.view("node").verdict is Verdict.ALLOW
    judge.skip(601)
    assert judge.open("gpu0") == {}


def test_a_brake_on_several_gpus_is_one_fault_of_the_node(judge: Judge) -> None:
    for gpu in ("gpu2", "gpu3"):
        minutes_of(judge, gpu, BRAKE, 6)
        judge.skipped_ns -= 420 * 10**9  # they are braked at the same time
    assert judge.open("gpu2") == judge.open("gpu3") == {}
    assert judge.open("node") == {"NV_POWER_BRAKE_NODE": "PreSeparateFault"}
    (fault,) = judge.engine.view().conditions
    assert fault.evidence["devices"] == "gpu2, gpu3"
    assert judge.view("node").verdict is Verdict.NO_NEW_JOBS
    assert judge.view("gpu2").verdict is Verdict.ALLOW


def test_a_brake_and_heat_on_two_gpus_are_two_faults(judge: Judge) -> None:
    minutes_of(judge, "gpu0", BRAKE, 6)
    minutes_of(judge, "gpu1", HEAT, 6)
    assert judge.open("gpu1") == {"NV_SLOWDOWN": "SubHealthFault"}
    assert judge.open("node") == {}


async def test_the_bits_of_a_gpu_are_counted_by_their_reason(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.node.set("gpu0", "gpu_clock_reasons", 0x88)
        h100.node.set("gpu1", "gpu_clock_reasons", 0x68)
        await stage.until(lambda: stage.health.readings["gpu1"].get("throttle.sw_thermal") == 1.0)
        await stage.until(lambda: stage.health.readings["gpu0"].get("throttle.hw_power_brake") == 1.0)
        braked, hot = (stage.health.readings[gpu] for gpu in ("gpu0", "gpu1"))
        assert (braked[BRAKE] > 0, braked[HEAT], braked[HEAT_OF_DRIVER]) == (True, 0, 0)
        assert (hot[BRAKE], hot[HEAT] > 0, hot[HEAT_OF_DRIVER] > 0) == (0, True, True)
