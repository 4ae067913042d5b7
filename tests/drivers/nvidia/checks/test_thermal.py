"""What slows a GPU down: heat and the power brake apart, each by its minutes; and what is no fault at all.

How far a GPU and its memory are from the temperature at which they are slowed.
"""

from pathlib import Path

import pytest

from nodeagent.core.model import ActiveSet, DeviceSeen, Kind, Verdict
from nodeagent.daemon.sources.telemetry_edges import RuleReadings as Edges
from nodeagent.drivers.nvidia.checks.telemetry import THROTTLE
from nodeagent.drivers.nvidia.checks.thermal import SlowdownMinutes
from nodeagent.drivers.nvidia.gpu import SELDOM
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings
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
        minutes.see(bits, float(second), GpuReadings(Calls(None), values))
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
    assert (slowdown.backing.evidence["metric"], slowdown.backing.evidence["part"]) == (
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
    assert fault.backing.evidence["devices"] == "gpu2, gpu3"
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


GPU, MEMORY = "temperature_excess_celsius.gpu", "temperature_excess_celsius.memory"
CORE_HOT, MEMORY_HOT = "NV_TEMPERATURE_GPU", "NV_TEMPERATURE_MEMORY"


@pytest.mark.parametrize(
    ("product", "fields", "excess", "code"),
    [
        ("2xA100", {"gpu_temperature_celsius": 85}, {GPU: 0.0}, ""),
        ("2xA100", {"gpu_temperature_celsius": 87}, {GPU: 2.0}, CORE_HOT),
        ("2xA100", {"gpu_memory_temperature_celsius": 96}, {MEMORY: 1.0}, MEMORY_HOT),
        ("2xH100", {"gpu_temperature_celsius": 88, "gpu_margin_celsius": -1}, {GPU: 1.0}, CORE_HOT),
        ("2xH100", {"gpu_memory_temperature_celsius": 106}, {MEMORY: 1.0}, MEMORY_HOT),
        ("2xH100", {"gpu_margin_celsius": -5}, {GPU: -53.0}, ""),
        ("2xB200", {"gpu_temperature_celsius": 89, "gpu_margin_celsius": 2}, {GPU: -2.0}, ""),
        ("2xB200", {"gpu_temperature_celsius": 92, "gpu_margin_celsius": -1}, {GPU: 1.0}, CORE_HOT),
    ],
)
async def test_a_gpu_at_its_limit_for_a_minute_is_told_by_what_its_driver_has(
    tmp_path: Path, judge: Judge, product: str, fields: dict[str, int], excess: dict[str, float], code: str
) -> None:
    bench = GpuNode(tmp_path, product)
    with bench.node:
        for field, value in fields.items():
            bench.node.set("gpu1", field, value)
        async with judged(bench.spec(), judge) as stage:
            await stage.until(lambda: excess.items() <= stage.health.readings.get("gpu1", {}).items())
            judge.skip(61)
            assert judge.open("gpu1") == ({code: "SubHealthFault"} if code else {})
            assert judge.open("gpu0") == {}
            assert judge.view("gpu1").verdict is Verdict.ALLOW


@pytest.mark.parametrize("margin", [0, -5])
async def test_a_margin_by_which_a_cool_gpu_would_be_too_hot_is_not_believed(
    tmp_path: Path, judge: Judge, margin: int
) -> None:
    bench = GpuNode(tmp_path, "2xB200")
    with bench.node:
        bench.node.set("gpu1", "gpu_margin_celsius", margin)
        async with judged(bench.spec(), judge) as stage:
            await stage.polled("gpu1", times=2 * SELDOM)
            judge.skip(3600)
            assert judge.open("gpu1") == {}
            assert GPU not in stage.health.readings["gpu1"]
            assert stage.health.readings["gpu0"][GPU] == -57.0


async def test_it_is_over_a_few_degrees_below_the_limit(h100: GpuNode, judge: Judge) -> None:
    h100.node.set("gpu1", "gpu_temperature_celsius", 90)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        judge.skip(61)
        assert judge.open("gpu1") == {CORE_HOT: "SubHealthFault"}
        h100.node.set("gpu1", "gpu_temperature_celsius", 86)
        await stage.until(lambda: stage.health.readings["gpu1"][GPU] == -1.0)
        assert judge.open("gpu1") == {CORE_HOT: "SubHealthFault"}
        h100.node.set("gpu1", "gpu_temperature_celsius", 83)
        await stage.until(lambda: judge.open("gpu1") == {})


async def test_the_limits_of_a_gpu_are_asked_once(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu0", times=5 * SELDOM)
        assert h100.node.calls("nvmlDeviceGetTemperatureThreshold", "gpu0") == 2


async def test_a_limit_that_could_not_be_read_is_asked_again(h100: GpuNode, judge: Judge) -> None:
    h100.node.answer(999, "gpu1", "nvmlDeviceGetTemperatureThreshold")
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=2 * SELDOM)
        assert MEMORY not in stage.health.readings["gpu1"]
        h100.node.release()
        await stage.until(lambda: stage.health.readings["gpu1"].get(MEMORY) == -64.0)
