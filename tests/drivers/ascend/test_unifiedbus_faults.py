"""Faults of UnifiedBus switches in the core: what they do to the node, and what an earlier life left open.

What the library of the switches itself has missed is learnt by another process.
"""

import pytest

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.model import Assertion, DeviceSeen, Level, Signal, SourceLost, Verdict
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.switches import FabricFault
from tests.daemon.staged import command
from tests.drivers.ascend.judged import judged, shipped
from tests.drivers.worker_specs import switch_spec

LINK_DOWN, BROKEN = 0x08520003, 0x00F103B0
CPU, NPU, L2 = 0, 1, 2


async def test_a_broken_switch_takes_its_node_out(fabric: EmulatedNode) -> None:
    fault = FabricFault(BROKEN, chip=4, sub_type=155907)
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05)) as stage:
        fabric.switches.raise_fault(fault)
        raised = await stage.raised("ub4", "[0x00f103b0,155907,na,na]")
        assert raised.condition_level is Level.SEPARATE_FAULT
        assert stage.device("node").verdict is Verdict.ISOLATE
        fabric.switches.clear_fault(fault)
        await stage.cleared("ub4", "[0x00f103b0,155907,na,na]")
        assert stage.device("node").verdict is Verdict.ALLOW


async def test_a_port_is_seen_before_its_fault(fabric: EmulatedNode) -> None:
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05)) as stage:
        fabric.switches.raise_fault(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=NPU))
        await stage.raised("ub2/5", "[0x08520003,na,npu,na]")
        inputs = [one for one in stage.inputs if isinstance(one, DeviceSeen | Signal)]
        about = [type(one) for one in inputs if (one.source, one.device) == ("unifiedbus", "ub2/5")]
        assert about == [DeviceSeen, Signal]
        await stage.until(lambda: stage.device("ub2/5").observed or None, "a read of the port")


async def test_what_an_earlier_life_opened_is_closed_at_the_start(fabric: EmulatedNode) -> None:
    code = "[0x08520003,na,npu,na]"
    left = Signal(source="unifiedbus", device="ub2/5", code=code, assertion=Assertion.OCCUR)
    async with judged(switch_spec(fabric.lingqu), ready=False) as stage:
        stage.judge(left)
        await stage.cleared("ub2/5", code)


async def test_what_an_earlier_life_opened_is_closed_once_the_faults_can_be_asked_for(
    fabric: EmulatedNode,
) -> None:
    code = "[0x08520003,na,npu,na]"
    left = Signal(source="unifiedbus", device="ub2/5", code=code, assertion=Assertion.OCCUR)
    fabric.answer(-8005, None, "lq_dcmi_get_fault_info", times=3)
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05), ready=False) as stage:
        stage.judge(left)
        await stage.cleared("ub2/5", code)
        await stage.until(lambda: stage.device("ub0").observed, "the switches observed")


async def test_every_code_of_the_switch_table_is_raised_with_its_level_and_cleared(
    fabric: EmulatedNode,
) -> None:
    faults = {row.code: fault_of(row.code, number) for number, row in enumerate(switch_rows())}
    assert len(faults) == 30
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05)) as stage:
        for fault in faults.values():
            fabric.switches.raise_fault(fault)
        for row in switch_rows():
            raised = await stage.raised(place_of(faults[row.code]), row.code)
            assert raised.condition_level is row.level
        for fault in faults.values():
            fabric.switches.clear_fault(fault)
        await stage.until(lambda: not stage.engine.view().conditions, "every code cleared")


def switch_rows() -> list[Row]:
    return [row for row in shipped().rows.values() if row.kind.value == "unifiedbus"]


def fault_of(code: str, number: int) -> FabricFault:
    """The event that has this code; of a peer there is none where the fault is of the whole chip."""
    alarm, fault, peer, _ = code.strip("[]").split(",")
    return FabricFault(
        event_type=int(alarm, 16),
        sub_type=0xFFFFFFFF if fault == "na" else int(fault),
        chip=number % 7,
        port=0xFFFF if peer == "na" else number,
        peer_device={"cpu": CPU, "npu": NPU, "L2": L2, "na": CPU}[peer],
    )


def place_of(fault: FabricFault) -> str:
    return f"ub{fault.chip}" if fault.port == 0xFFFF else f"ub{fault.chip}/{fault.port}"


FAULT_OF_LINK = FabricFault(0x08520003, chip=2, port=5, peer_device=2)
CODE = "[0x08520003,na,L2,na]"


@pytest.fixture
def spec(fabric: EmulatedNode) -> WorkerSpec:
    module = "tests.drivers.ascend.renewed_switch"
    arguments = ("-m", "nodeagent.worker", "unifiedbus", "--module", module)
    return switch_spec(fabric.lingqu, command=command(*arguments))


async def test_a_fault_whose_event_the_driver_dropped_is_raised(
    fabric: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        fabric.switches.raise_fault(FAULT_OF_LINK, deliver=False)
        await stage.raised("ub2/5", CODE)
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []


async def test_a_fault_whose_recovery_the_driver_dropped_is_cleared(
    fabric: EmulatedNode, spec: WorkerSpec
) -> None:
    fabric.switches.raise_fault(FAULT_OF_LINK)
    async with judged(spec) as stage:
        await stage.raised("ub2/5", CODE)
        fabric.switches.clear_fault(FAULT_OF_LINK, deliver=False)
        await stage.cleared("ub2/5", CODE)
