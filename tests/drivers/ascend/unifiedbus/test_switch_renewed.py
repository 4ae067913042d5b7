"""What the library of the switches itself has missed is learnt by another process."""

import pytest

from nodeagent.core.model import SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.unifiedbus.switches import FabricFault
from tests.daemon.staged import command
from tests.drivers.ascend.judged import judged
from tests.drivers.ascend.unifiedbus.test_contract import switch_spec

LINK_DOWN = FabricFault(0x08520003, chip=2, port=5, peer_device=2)
CODE = "[0x08520003,na,L2,na]"


@pytest.fixture
def spec(fabric: EmulatedNode) -> WorkerSpec:
    module = "tests.drivers.ascend.unifiedbus.renewed_switch"
    arguments = ("-m", "nodeagent.worker", "unifiedbus", "--module", module)
    return switch_spec(fabric.lingqu, command=command(*arguments))


async def test_a_fault_whose_event_the_driver_dropped_is_raised(
    fabric: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        fabric.switches.raise_fault(LINK_DOWN, deliver=False)
        await stage.raised("ub2/5", CODE)
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []


async def test_a_fault_whose_recovery_the_driver_dropped_is_cleared(
    fabric: EmulatedNode, spec: WorkerSpec
) -> None:
    fabric.switches.raise_fault(LINK_DOWN)
    async with judged(spec) as stage:
        await stage.raised("ub2/5", CODE)
        fabric.switches.clear_fault(LINK_DOWN, deliver=False)
        await stage.cleared("ub2/5", CODE)
