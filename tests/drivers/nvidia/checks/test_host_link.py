"""The links between GPU and CPU of one module: reported where one is down, and asked seldom.

PCI Express: its generation against what GPU and slot can do, and what it repeats against what it may.
"""

import pynvml
import pytest

from nodeagent.core.model import Assertion, Signal, Verdict
from nodeagent.drivers.nvidia.checks.host_link import (
    DOWN,
    EACH_S,
    C2c,
    PcieGeneration,
    ReplayMinutes,
    replays_a_minute,
)
from nodeagent.drivers.nvidia.gpu import SELDOM
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.nvidia.bench import Clock, GpuNode, Judge, judged
from tests.emulator.nvml.conftest import Opened

LINKS = 10


def join(node: EmulatedNode, gpu: str, *down: int) -> None:
    """To a CPU, as on a GH200."""
    node.set(gpu, "gpu_c2c_mode", 1)
    node.set(gpu, "gpu_c2c_link_count", LINKS)
    for link in range(LINKS):
        node.set(gpu, "gpu_c2c_link_states", int(link not in down), place=link)


async def test_a_link_to_the_cpu_that_is_down_is_told_and_the_gpu_stays_in_service(
    h100: GpuNode, judge: Judge
) -> None:
    join(h100.node, "gpu0")
    join(h100.node, "gpu1", 3)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert [judge.open(f"gpu{number}") for number in range(3)] == [{}, {DOWN: "SubHealthFault"}, {}]
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        readings = stage.health.readings
        assert [readings["gpu1"][f"c2c_links_{what}"] for what in ("up", "missing")] == [9.0, 1.0]
        assert "c2c_links_up" not in readings["gpu2"]


async def test_gpus_without_such_links_are_asked_once_and_those_with_them_seldom(
    h100: GpuNode, judge: Judge
) -> None:
    join(h100.node, "gpu1")
    async with judged(h100.spec(), judge) as stage:
        for gpu in ("gpu0", "gpu1"):
            await stage.polled(gpu, times=5 * SELDOM)
            assert h100.node.calls("field:170", gpu) == 1


async def test_an_xid_that_tells_the_same_is_one_fault_with_it(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        judge.take(Signal(source="nvidia", device="gpu1", code="XID_173", assertion=Assertion.ONCE))
        judge.take(Signal(source="nvidia", device="gpu1", code=DOWN, assertion=Assertion.OCCUR))
        assert judge.open("gpu1") == {"XID_173": "SeparateNPU"}


def read(c2c: C2c, calls: Calls) -> list[str] | None:
    calls.turn()
    return c2c.read(GpuReadings(calls, {}))


def test_where_c2c_is_off_no_link_is_missed(opened: Opened) -> None:
    join(opened.node, "gpu0", *range(LINKS))
    opened.node.set("gpu0", "gpu_c2c_mode", 0)
    calls = Calls(opened.handle)
    c2c = C2c(calls)
    assert [read(c2c, calls) for _ in range(3)] == [[], [], []]
    assert opened.node.calls("nvmlDeviceGetC2cModeInfoV", "gpu0") == 1


def test_a_link_that_is_no_longer_counted_is_missed_all_the_same(opened: Opened) -> None:
    join(opened.node, "gpu0")
    clock, calls = Clock(), Calls(opened.handle)
    c2c = C2c(calls, clock)
    assert read(c2c, calls) == []
    opened.node.set("gpu0", "gpu_c2c_link_count", LINKS - 1)
    clock.now_s += EACH_S
    assert read(c2c, calls) == [DOWN]


@pytest.mark.parametrize("function", ["field:170", "field:171"])
def test_a_failure_keeps_what_was_known(opened: Opened, function: str) -> None:
    join(opened.node, "gpu0", 0)
    clock, calls = Clock(), Calls(opened.handle)
    c2c = C2c(calls, clock)
    assert read(c2c, calls) == [DOWN]
    opened.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu0", function)
    clock.now_s += EACH_S
    assert read(c2c, calls) == [DOWN]
    assert calls.failed
    opened.node.release()
    join(opened.node, "gpu0")
    assert read(c2c, calls) == []


SLOW = "NV_PCIE_GENERATION"


def work(bench: GpuNode, gpu: str) -> None:
    bench.node.set(gpu, "gpu_clock_reasons", 0)
    bench.node.set(gpu, "gpu_utilization_percent", 97)


async def test_a_gpu_that_works_with_a_slower_link_than_it_could_have_is_told(
    h100: GpuNode, judge: Judge
) -> None:
    work(h100, "gpu1")
    h100.node.set("gpu1", "gpu_pcie_generation", 3)
    async with judged(h100.spec(), judge) as stage:
        await stage.until(
            lambda: stage.health.readings.get("gpu1", {}).get("pcie_generations_missing") == 2.0
        )
        judge.skip(61)
        assert judge.open("gpu1") == {SLOW: "SubHealthFault"}
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        h100.node.set("gpu1", "gpu_pcie_generation", 5)
        await stage.until(lambda: judge.open("gpu1") == {})


async def test_an_idle_gpu_is_not_accused_of_the_generation_that_it_has_lowered(
    h100: GpuNode, judge: Judge
) -> None:
    for gpu in ("gpu0", "gpu1", "gpu2"):
        h100.node.set(gpu, "gpu_pcie_generation", 1)
    h100.node.set("gpu1", "gpu_utilization_percent", 97)
    h100.node.set("gpu2", "gpu_clock_reasons", 0)
    async with judged(h100.spec(), judge) as stage:
        for gpu in ("gpu0", "gpu1", "gpu2"):
            await stage.polled(gpu, times=4 * SELDOM)
        judge.skip(3600)
        for gpu in ("gpu0", "gpu1", "gpu2"):
            assert judge.open(gpu) == {}
            assert stage.health.readings[gpu]["pcie_generation"] == 1.0


async def test_a_slot_that_can_do_no_more_is_no_fault(h100: GpuNode, judge: Judge) -> None:
    work(h100, "gpu1")
    h100.node.set("gpu1", "gpu_pcie_generation", 4)
    h100.node.set("gpu1", "gpu_pcie_generation_limit", 4)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=4 * SELDOM)
        assert stage.health.readings["gpu1"]["pcie_generations_missing"] == 0.0


@pytest.mark.parametrize("mode", [1, 2])
async def test_in_a_guest_which_sees_no_real_slot_no_link_is_judged(
    h100: GpuNode, judge: Judge, mode: int
) -> None:
    work(h100, "gpu1")
    h100.node.set("gpu1", "gpu_virtualization_mode", mode)
    h100.node.set("gpu1", "gpu_pcie_generation", 3)
    h100.node.set("gpu1", "gpu_pcie_width", 8)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=4 * SELDOM)
        judge.skip(3600)
        assert judge.open("gpu1") == {}
        assert stage.health.readings["gpu1"]["pcie_width_lanes"] == 8.0


def test_a_generation_is_judged_by_two_readings_of_a_gpu_that_works() -> None:
    generation = PcieGeneration()
    assert generation.see(1, 5, is_working=False) is None
    assert generation.see(1, 5, is_working=True) is None
    assert generation.see(1, 5, is_working=False) is None
    assert generation.see(1, 5, is_working=True) is None
    assert generation.see(1, 5, is_working=True) == 4
    assert generation.see(1, 5, is_working=False) == 4
    assert generation.see(None, 5, is_working=True) is None
    assert generation.see(5, 5, is_working=False) == 0
    assert generation.see(1, 5, is_working=True) == 0


@pytest.mark.parametrize(
    ("generation", "lanes", "limit"),
    [(1, 16, 3), (3, 16, 8), (4, 16, 16), (5, 16, 31), (5, 8, 16), (6, 16, 62), (7, 16, 62)],
)
def test_a_link_may_repeat_as_much_as_its_lanes_and_speed_allow(
    generation: int, lanes: int, limit: int
) -> None:
    assert replays_a_minute(generation, lanes) == limit


def counted(*totals: int | None, every_s: float = 5.0, generation: int = 5) -> int:
    minutes = ReplayMinutes()
    for number, total in enumerate(totals):
        minutes.see(total, generation, 16, number * every_s)
    return minutes.total


def test_a_minute_with_more_than_that_counts_once() -> None:
    assert counted(*range(0, 13 * 31, 31)) == 1
    assert counted(*[0] * 12, 31, *[31] * 12) == 0
    assert counted(*[0] * 12, 32, *[32] * 12) == 1
    assert counted(*[7000] * 30) == 0


def test_a_counter_that_began_anew_or_cannot_be_read_counts_nothing() -> None:
    assert counted(*[7000] * 12, *[0] * 13) == 0
    assert counted(0, *[None] * 23, 60) == 0
    assert counted(0, *[None] * 10, 60) == 0
    assert counted(0, *[None] * 11, 60) == 1


def test_after_a_pause_it_is_the_rate_that_counts() -> None:
    assert counted(0, 300, every_s=600.0) == 0
    assert counted(0, 311, every_s=600.0) == 1


def test_a_link_that_is_slowed_amid_a_minute_is_judged_by_its_faster_part() -> None:
    minutes = ReplayMinutes()
    minutes.see(0, 5, 16, 0.0)
    minutes.see(20, 1, 16, 60.0)
    assert minutes.total == 0
    minutes.see(40, 1, 16, 120.0)
    assert minutes.total == 1


@pytest.mark.parametrize(("bus", "is_read"), [(2, True), (3, False), (0, False), (0xFFFFFFFF, True)])
async def test_a_gpu_that_is_on_no_pci_express_bus_has_no_such_link(
    h100: GpuNode, bus: int, is_read: bool
) -> None:
    """GB10 answers placeholders, generation 1 and one lane (nvtop pull request 499)."""
    h100.node.set("gpu1", "gpu_bus_type", bus)
    h100.node.set("gpu1", "gpu_pcie_width", 1)
    async with judged(h100.spec(), Judge()) as stage:
        await stage.back()
        readings = stage.health.readings
        assert ("pcie_lanes_missing" in readings["gpu1"]) is is_read
        assert "pcie_lanes_missing" in readings["gpu0"]
