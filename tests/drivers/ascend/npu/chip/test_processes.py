"""Which processes hold an NPU, and what is made of lists that fail or make no sense."""

import os
from pathlib import Path

import pytest

from nodeagent.core.model import Holders
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.judged import Judged, judged
from tests.drivers.ascend.npu.test_contract import ascend_spec

PROCESSES = "dcmi_get_device_resource_info"


@pytest.fixture
def spec(node: EmulatedNode) -> WorkerSpec:
    return ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)


async def test_the_processes_on_a_chip_are_its_holders(node: EmulatedNode, spec: WorkerSpec) -> None:
    node.hold("npu3", os.getpid())
    async with judged(spec) as stage:
        held = await stage.until(lambda: holders_of(stage, "npu3"), "holders")
        assert [holder.pid for holder in held[-1].holders] == [os.getpid()]
        assert held[-1].holders[0].start_time > 0
        assert holders_of(stage, "npu4")[-1].holders == ()
        node.let_go("npu3")
        await stage.until(lambda: not holders_of(stage, "npu3")[-1].holders, "a free chip")


async def test_a_list_of_processes_that_cannot_be_says_nothing_of_holders(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.set("npu3", "process_count_lie", 10_000)
    node.hold("npu4", -1)
    async with judged(spec) as stage:
        await stage.polled("npu5", 1)
        assert holders_of(stage, "npu3") == []
        assert holders_of(stage, "npu4") == []
        assert holders_of(stage, "npu5")[-1].holders == ()


async def test_a_process_that_cannot_be_seen_holds_the_chip_all_the_same(
    node: EmulatedNode, tmp_path: Path
) -> None:
    config = {"library": str(node.dcmi), "sysfs": str(tmp_path), "procfs": str(tmp_path / "proc")}
    spec = ascend_spec(node.dcmi, tmp_path, config=config)
    node.hold("npu3", 4711)
    async with judged(spec) as stage:
        held = await stage.until(lambda: holders_of(stage, "npu3"), "holders")
        assert [(one.pid, one.start_time, one.command) for one in held[-1].holders] == [(4711, 0, "")]


@pytest.mark.parametrize("count", [33, 64])
async def test_a_chip_may_be_held_by_as_many_processes_as_the_library_tells(
    node: EmulatedNode, spec: WorkerSpec, count: int
) -> None:
    for process in range(count):
        node.hold("npu3", 10_000_000 + process)
    async with judged(spec) as stage:
        await stage.polled("npu3", 1)
        assert [len(each.holders) for each in holders_of(stage, "npu3")] == [count]


async def test_a_list_that_fails_because_a_process_has_just_ended_is_asked_for_again(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.hold("npu3", os.getpid())
    async with judged(spec) as stage:
        await stage.polled("npu3", 1)
        node.end_process("npu3", os.getpid())
        await stage.until(lambda: not holders_of(stage, "npu3")[-1].holders, "a free chip")
        assert [each.known for each in holders_of(stage, "npu3")] == [True, True]


async def test_holders_are_unknown_while_the_list_fails(node: EmulatedNode, spec: WorkerSpec) -> None:
    node.hold("npu3", os.getpid())
    async with judged(spec) as stage:
        await stage.polled("npu3", 1)
        node.answer(-8005, "npu3", PROCESSES)
        await stage.until(lambda: not holders_of(stage, "npu3")[-1].known, "unknown holders")


def holders_of(stage: Judged, device: str) -> list[Holders]:
    return [one for one in stage.inputs if isinstance(one, Holders) and one.device == device]
