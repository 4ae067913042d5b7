"""PCI Express: its generation against what GPU and slot can do, and what it repeats against what it may."""

import pytest

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.checks.host_link import PcieGeneration, ReplayMinutes, replays_a_minute
from nodeagent.drivers.nvidia.gpu import SELDOM
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

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
