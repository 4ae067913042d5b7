"""Faults of UnifiedBus switches: their codes, where they are, what they do to the node, and how they heal."""

from collections.abc import Callable, Sequence

import pytest

from nodeagent.core.catalog import Row
from nodeagent.core.model import Assertion, DeviceSeen, Level, Signal, Verdict
from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import lingqu
from nodeagent.drivers.ascend.errors import SWITCH_STATUS
from nodeagent.drivers.ascend.switch import SwitchDriver
from nodeagent.emulator.lingqu_faults import FabricFault
from nodeagent.emulator.node import EmulatedNode
from nodeagent.worker.protocol import Batch, CaughtUp, Lost
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.judged import judged, shipped
from tests.drivers.ascend.recorder import Recorder
from tests.drivers.ascend.test_unifiedbus_contract import switch_spec

LINK_DOWN, LINK_FAILED, BROKEN = 0x08520003, 0x00F1FEF5, 0x00F103B0
CPU, NPU, L2 = 0, 1, 2
RECOVERY, FAULT = 0, 1


@pytest.fixture
def fabric(emulate: Emulate) -> EmulatedNode:
    node = emulate("16xA3")
    node.set_node("fabric_poll_ms", 0)
    return node


class Interrupted(Recorder):
    """Does something before it takes the next report."""

    first: Callable[[], None] | None = None

    def __call__(self, report: Batch | CaughtUp | Lost) -> None:
        first, self.first = self.first, None
        if first is not None:
            first()
        super().__call__(report)


class Watched:
    """The driver itself, asked as its worker would, and as often as a test likes."""

    def __init__(self, node: EmulatedNode, query_each_ns: int = 0, emit: Recorder | None = None) -> None:
        self.emit = emit or Recorder()
        self.driver = SwitchDriver(library=str(node.lingqu), emit=self.emit, query_each_ns=query_each_ns)
        self.driver.open()
        self.driver.devices()
        self.names = [device.device for device in self.driver.devices().devices]

    def listed(self) -> Sequence[str]:
        return [device.device for device in self.driver.devices().devices]

    def codes(self, device: str) -> list[str] | None:
        active = self.driver.poll(device).active
        return None if active is None else [each.code for each in active]


@pytest.mark.parametrize(
    ("fault", "device", "code"),
    [
        (FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2), "ub2/5", "[0x08520003,na,L2,na]"),
        (FabricFault(LINK_DOWN, chip=2, port=0, peer_device=CPU), "ub2/0", "[0x08520003,na,cpu,na]"),
        (
            FabricFault(LINK_FAILED, chip=6, port=47, sub_type=155912, peer_device=NPU),
            "ub6/47",
            "[0x00f1fef5,155912,npu,na]",
        ),
        (
            FabricFault(LINK_FAILED, chip=6, port=47, sub_type=155913, peer_device=9),
            "ub6/47",
            "[0x00f1fef5,155913,na,na]",
        ),
        (FabricFault(BROKEN, chip=0, port=0xFFFF, sub_type=155907), "ub0", "[0x00f103b0,155907,na,na]"),
    ],
)
def test_a_fault_has_the_code_of_the_tables_and_the_device_it_is_at(
    fabric: EmulatedNode, fault: FabricFault, device: str, code: str
) -> None:
    fabric.raise_fabric(fault, deliver=False)
    watched = Watched(fabric)
    assert watched.codes(device) == [code]


def test_the_chips_are_listed_and_of_their_ports_those_with_faults(fabric: EmulatedNode) -> None:
    fabric.raise_fabric(FabricFault(LINK_DOWN, chip=2, port=5), deliver=False)
    watched = Watched(fabric)
    assert watched.names == [*(f"ub{chip}" for chip in range(7)), "ub2/5"]
    assert {device.kind.value for device in watched.driver.devices().devices} == {"unifiedbus"}


def test_between_two_queries_a_poll_claims_nothing(fabric: EmulatedNode) -> None:
    watched = Watched(fabric, query_each_ns=10**18)
    assert watched.codes("ub2") == []
    calls = fabric.calls("lq_dcmi_get_fault_info")
    assert watched.codes("ub2") is None
    assert fabric.calls("lq_dcmi_get_fault_info") == calls


def test_an_event_of_a_port_in_the_list_is_told_at_once(fabric: EmulatedNode) -> None:
    fault = FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2, peer_port=3)
    fabric.raise_fabric(fault, deliver=False)
    watched = Watched(fabric)
    watched.codes("ub2/5")
    fabric.clear_fabric(fault)
    watched.emit.until(lambda: len(watched.emit.signals) == 1)
    (signal,) = watched.emit.signals
    assert (signal.device, signal.code, signal.assertion.value) == (
        "ub2/5",
        "[0x08520003,na,L2,na]",
        "recover",
    )
    assert (signal.evidence["peer_device"], signal.evidence["peer_port"]) == ("2", "3")


def test_a_recovery_that_names_another_port_at_the_other_end_is_one_all_the_same(
    fabric: EmulatedNode,
) -> None:
    fabric.raise_fabric(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2, peer_port=3))
    watched = Watched(fabric)
    watched.codes("ub2/5")
    told = len(watched.emit.signals)
    for peer_port, assertion in ((3, FAULT), (0, RECOVERY)):
        fault = FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2, peer_port=peer_port)
        fabric.tell_fabric(fault, assertion)
    watched.emit.until(lambda: len(watched.emit.signals) == told + 2)
    assert watched.emit.signals[-1].assertion is Assertion.RECOVER


def test_a_port_is_listed_before_its_first_event_is_told(fabric: EmulatedNode) -> None:
    watched = Watched(fabric, query_each_ns=10**18)
    fabric.raise_fabric(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2))
    watched.emit.until(lambda: "ub2/5" in watched.listed())
    assert watched.emit.signals == []
    assert watched.codes("ub2/5") == ["[0x08520003,na,L2,na]"]
    assert [signal.device for signal in watched.emit.signals] == ["ub2/5"]


def test_a_recovery_never_overtakes_the_fault_of_a_port_seen_for_the_first_time(
    fabric: EmulatedNode,
) -> None:
    fault = FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2)
    emit = Interrupted()
    watched = Watched(fabric, query_each_ns=10**18, emit=emit)
    fabric.raise_fabric(fault)
    emit.until(lambda: "ub2/5" in watched.listed())

    def recover() -> None:
        fabric.clear_fabric(fault)
        emit.until(lambda: watched.driver.devices().readings["events_total"] == 2)

    emit.first = recover
    watched.codes("ub2/5")
    emit.until(lambda: len(emit.signals) == 2)
    assert [signal.assertion.value for signal in emit.signals] == ["occur", "recover"]


def test_a_port_whose_recovery_was_lost_is_in_order_at_the_next_query(fabric: EmulatedNode) -> None:
    fault = FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2)
    fabric.raise_fabric(fault, deliver=False)
    watched = Watched(fabric)
    assert watched.codes("ub2/5") == ["[0x08520003,na,L2,na]"]
    fabric.clear_fabric(fault, deliver=False)
    assert watched.codes("ub2/5") == []


def test_without_events_every_poll_asks(fabric: EmulatedNode) -> None:
    fabric.answer(-8014, None, "lq_dcmi_subscribe_fault_event", times=1)
    watched = Watched(fabric, query_each_ns=10**18)
    assert [watched.codes("ub2"), watched.codes("ub2")] == [[], []]
    watched.listed()
    assert watched.codes("ub2") is None


def test_a_query_that_fails_says_nothing_of_any_port(fabric: EmulatedNode) -> None:
    watched = Watched(fabric)
    fabric.answer(-8005, None, "lq_dcmi_get_fault_info")
    with pytest.raises(CallFailed, match=r"lq_dcmi_get_fault_info: ioctl failed \(IOCTL, -8005\)"):
        watched.codes("ub2")


@pytest.mark.parametrize("count", [-1, 10_000])
def test_a_number_of_faults_that_cannot_be_is_refused(fabric: EmulatedNode, count: int) -> None:
    watched = Watched(fabric)
    fabric.set_node("fabric_fault_count_lie", count)
    with pytest.raises(CallFailed, match="the number of switch faults is given as"):
        watched.codes("ub2")


@pytest.mark.parametrize("status", [status for status in SWITCH_STATUS if status not in (-8004, -8017)])
def test_a_library_that_refuses_to_start_is_unavailable_with_its_answer(
    fabric: EmulatedNode, status: int
) -> None:
    fabric.answer(status, None, "lq_dcmi_init")
    with pytest.raises(Unavailable) as refused:
        lingqu.open_library(str(fabric.lingqu))
    assert (refused.value.errno, refused.value.absent) == (-status, False)
    assert SWITCH_STATUS[status][1] in str(refused.value)


def test_a_machine_without_such_switches_has_nothing_to_open(fabric: EmulatedNode) -> None:
    fabric.answer(-8004, None, "lq_dcmi_init")
    with pytest.raises(Unavailable) as refused:
        lingqu.open_library(str(fabric.lingqu))
    assert refused.value.absent


# --------------------------------------------------------------------------- in the core


async def test_a_broken_switch_takes_its_node_out(fabric: EmulatedNode) -> None:
    fault = FabricFault(BROKEN, chip=4, sub_type=155907)
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05)) as stage:
        fabric.raise_fabric(fault)
        raised = await stage.raised("ub4", "[0x00f103b0,155907,na,na]")
        assert raised.condition_level is Level.SEPARATE_FAULT
        assert stage.device("node").verdict is Verdict.ISOLATE
        fabric.clear_fabric(fault)
        await stage.cleared("ub4", "[0x00f103b0,155907,na,na]")
        assert stage.device("node").verdict is Verdict.ALLOW


async def test_a_port_is_seen_before_its_fault(fabric: EmulatedNode) -> None:
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05)) as stage:
        fabric.raise_fabric(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=NPU))
        await stage.raised("ub2/5", "[0x08520003,na,npu,na]")
        told = [one for one in stage.inputs if isinstance(one, DeviceSeen | Signal)]
        about = [type(one) for one in told if (one.source, one.device) == ("unifiedbus", "ub2/5")]
        assert about == [DeviceSeen, Signal]
        assert stage.device("ub2/5").observed


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


def test_nothing_is_said_to_be_in_order_before_all_faults_were_asked_for(fabric: EmulatedNode) -> None:
    fabric.answer(-8005, None, "lq_dcmi_get_fault_info", times=3)
    watched = Watched(fabric)
    with pytest.raises(CallFailed, match="the faults of the switches are not known: lq_dcmi_get_fault_info"):
        watched.codes("ub2")
    watched.listed()
    assert watched.codes("ub2") == []
    assert [type(report) for report in watched.emit.reports] == [CaughtUp]


async def test_every_code_of_the_switch_table_is_raised_with_its_level_and_cleared(
    fabric: EmulatedNode,
) -> None:
    faults = {row.code: fault_of(row.code, number) for number, row in enumerate(switch_rows())}
    assert len(faults) == 30
    async with judged(switch_spec(fabric.lingqu, poll_interval_s=0.05)) as stage:
        for fault in faults.values():
            fabric.raise_fabric(fault)
        for row in switch_rows():
            raised = await stage.raised(place_of(faults[row.code]), row.code)
            assert raised.condition_level is row.level
        for fault in faults.values():
            fabric.clear_fabric(fault)
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
