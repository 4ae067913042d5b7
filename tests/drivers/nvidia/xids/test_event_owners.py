"""An Xid is that of the GPU which its event names, and of an instance only where the GPU is divided."""

import pytest

from nodeagent.core.model import Handling, Signal
from nodeagent.drivers.nvidia.events import WINDOW_NS, Doubles
from nodeagent.emulator.gpus import Instance
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

EVERY_SET, WHO_LOOKS_FIRST = 1, 2
NOTHING_SAID = Instance(gpu=0, compute=0)
"""What a library leaves that does not set the ids (nvmlEventData_t in nvml.h promises all ones)."""


@pytest.mark.parametrize("reach", [EVERY_SET, WHO_LOOKS_FIRST], ids=["every set", "who looks first"])
async def test_an_event_that_comes_by_another_gpus_set_is_that_of_its_own_gpu_once(
    h100: GpuNode, judge: Judge, reach: int
) -> None:
    h100.node.set_node("gpu_events_to", reach)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        for gpu in ("gpu3", "gpu1"):
            h100.gpus.raise_xid(gpu, 79)
            await stage.signal("XID_79", gpu, "once")
        await stage.polled("gpu1", times=12)
        told = [
            given.device for given in stage.inputs if isinstance(given, Signal) and given.code == "XID_79"
        ]
        assert told == ["gpu3", "gpu1"]


async def test_on_a_gpu_without_mig_an_xid_is_the_gpus(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu2", 94, instance=NOTHING_SAID)
        signal = await stage.signal("XID_94", "gpu2", "once")
        assert signal.evidence == {"xid": "94"}
        assert judge.view("gpu2").handling is Handling.RESTART_JOB


async def test_a_gpu_that_was_divided_a_moment_ago_is_so_for_its_events(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.partition("gpu2", [3, 3])
        h100.gpus.raise_xid("gpu2", 31, instance=Instance(gpu=1))
        await stage.signal("XID_31", "gpu2/gi1", "once")


async def test_an_event_of_a_device_that_nobody_knows_is_refused(h100: GpuNode, judge: Judge) -> None:
    h100.node.set_node("gpu_events_to", WHO_LOOKS_FIRST)
    h100.node.answer(2, "gpu3", "nvmlDeviceGetUUID")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        refused = stage.health.readings["*"]["refused_values_total"]
        for _ in range(20):
            h100.gpus.raise_xid("gpu3", 79)
        await stage.until(lambda: stage.health.readings["*"]["refused_values_total"] > refused)


def test_what_comes_by_two_sets_within_a_second_is_one_event() -> None:
    doubles, key = Doubles(), ("gpu1", "XID_31")
    assert [doubles.has(key, by, at_ns) for by, at_ns in (("gpu1", 5), ("gpu0", 6), ("gpu1", 7))] == [
        False,
        True,
        False,
    ]
    assert not doubles.has(key, "gpu0", 7 + WINDOW_NS)
    assert not doubles.has(("gpu1", "XID_13"), "gpu0", 8)
