"""MIG: what hits one instance is that instance's, by NVML and by the kernel's line, and no neighbour's."""

import re

import pytest

from nodeagent.core.model import Handling, Kind, Verdict
from nodeagent.emulator.gpus import Instance, xid_line
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

PROGRAMS = (13, 31, 43, 45, 68, 69, 94)
"""An index assert, accesses out of range, jobs that were ended, media errors, a contained memory error."""

HOUR_S = 3600
UUID = re.compile(r"MIG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FIRST, SECOND = Instance(gpu=1), Instance(gpu=2, compute=0)


@pytest.fixture
def cut(h100: GpuNode) -> GpuNode:
    """gpu0 is in three."""
    h100.gpus.partition("gpu0", [3, 2, 1])
    return h100


async def test_the_instances_of_a_gpu_are_told_with_the_uuids_that_programs_use(
    cut: GpuNode, judge: Judge
) -> None:
    cut.gpus.chip("gpu1").gpu_mig_mode = 1
    async with judged(cut.spec(), judge) as stage:
        await stage.back()
        attributes = judge.view("gpu0").attributes
        told = dict(each.split("=") for each in attributes["mig_devices"].split(","))
        assert list(told) == ["gi1", "gi2", "gi3"]
        assert [each for each in told.values() if not UUID.fullmatch(each)] == []
        assert len(set(told.values())) == 3
        assert judge.view("gpu1").attributes["mig_devices"] == "none"
        assert "mig_devices" not in judge.view("gpu2").attributes


async def test_faults_of_programs_on_one_instance_take_nothing_out_of_service(
    cut: GpuNode, judge: Judge
) -> None:
    async with judged(cut.spec(), judge) as stage:
        await stage.back()
        for turn in range(5):
            for xid in PROGRAMS:
                stage.inputs.clear()
                cut.gpus.raise_xid("gpu0", xid, instance=FIRST)
                await stage.signal(f"XID_{xid}", "gpu0/gi1", "once")
                judge.kernel_line(xid_line(cut.gpus.pci("gpu0"), xid, process_id=4000 + turn, instance=FIRST))
            await stage.polled("gpu0", times=2)
            judge.skip(HOUR_S / 5)
    assert {event.device for event in judge.events if event.kind == "raised"} == {"gpu0/gi1"}
    assert {event.verdict for event in judge.events} <= {Verdict.ALLOW, Verdict.UNKNOWN}
    assert judge.emitted("promoted") == []


async def test_each_instance_has_its_own_verdict_and_the_gpu_has_none_of_theirs(
    cut: GpuNode, judge: Judge
) -> None:
    cut.gpus.driver.make_older("520")
    async with judged(cut.spec(), judge) as stage:
        await stage.back()
        cut.gpus.raise_xid("gpu0", 159, instance=FIRST)
        cut.gpus.raise_xid("gpu0", 31, instance=SECOND)
        await stage.signal("XID_159", "gpu0/gi1", "once")
        await stage.signal("XID_31", "gpu0/gi2", "once")
        first, second = judge.view("gpu0/gi1"), judge.view("gpu0/gi2")
        assert (first.kind, second.kind) == (Kind.INSTANCE, Kind.INSTANCE)
        assert (first.verdict, first.handling) == (Verdict.ISOLATE, Handling.RESCHEDULE)
        assert (second.verdict, second.handling) == (Verdict.ALLOW, Handling.RESTART_JOB)
        assert (judge.view("gpu0").verdict, judge.view("gpu0").handling) == (Verdict.ALLOW, Handling.NONE)


async def test_what_needs_a_reset_concerns_the_gpu_and_each_of_its_instances(
    cut: GpuNode, judge: Judge
) -> None:
    async with judged(cut.spec(), judge) as stage:
        await stage.back()
        cut.gpus.raise_xid("gpu0", 31, instance=SECOND)
        await stage.signal("XID_31", "gpu0/gi2", "once")
        cut.gpus.raise_xid("gpu0", 62, instance=FIRST)
        await stage.signal("XID_62", "gpu0/gi1", "once")
        assert judge.open("gpu0") == {"XID_62": "RestartNPU"}
        assert judge.view("gpu0").verdict is judge.view("gpu0/gi2").verdict is Verdict.ISOLATE
        assert judge.view("gpu1").verdict is Verdict.ALLOW


@pytest.mark.parametrize("line_first", [True, False], ids=["line first", "event first"])
async def test_an_xid_of_an_instance_by_both_sources_is_one_fault(
    cut: GpuNode, judge: Judge, line_first: bool
) -> None:
    line = xid_line(cut.gpus.pci("gpu0"), 31, process_id=7, instance=Instance(gpu=1, compute=0))
    async with judged(cut.spec(), judge) as stage:
        await stage.back()
        if line_first:
            judge.kernel_line(line)
        cut.gpus.raise_xid("gpu0", 31, instance=FIRST)
        await stage.signal("XID_31", "gpu0/gi1", "once")
        if not line_first:
            judge.kernel_line(line)
        assert judge.emitted("raised") == [("raised", "gpu0/gi1", "XID_31")]


async def test_a_line_alone_that_the_driver_does_not_confirm_is_disregarded_on_an_instance_too(
    cut: GpuNode, judge: Judge
) -> None:
    cut.gpus.driver.make_older("520")
    async with judged(cut.spec(), judge) as stage:
        await stage.back()
        judge.kernel_line(xid_line(cut.gpus.pci("gpu0"), 159, instance=FIRST))
        assert judge.view("gpu0/gi1").verdict is Verdict.ISOLATE
        await stage.polled("gpu0", times=3)
        judge.skip(31)
        assert judge.view("gpu0/gi1").verdict is Verdict.ALLOW
