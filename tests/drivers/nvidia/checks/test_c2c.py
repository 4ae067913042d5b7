"""The links between GPU and CPU of one module: reported where one is down, and asked seldom."""

import pynvml
import pytest

from nodeagent.core.model import Assertion, Signal, Verdict
from nodeagent.drivers.nvidia.checks.host_link import DOWN, EACH_S, C2c
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
