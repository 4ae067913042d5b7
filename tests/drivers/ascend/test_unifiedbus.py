"""The driver of UnifiedBus switches: where faults are and what they are called, and what is asked when."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from nodeagent.core.model import Assertion
from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import unifiedbus
from nodeagent.drivers.ascend.dcmi_calls import SWITCH_STATUS
from nodeagent.drivers.ascend.unifiedbus import SwitchDriver
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.switches import FabricFault
from nodeagent.wire import CaughtUp, Following
from tests.drivers.ascend.recorder import Recorder

LINK_DOWN, LINK_FAILED, BROKEN = 0x08520003, 0x00F1FEF5, 0x00F103B0
CPU, NPU, L2 = 0, 1, 2
RECOVERY, FAULT = 0, 1


class Interrupted(Recorder):
    """Does something before it takes the next report."""

    first: Callable[[], None] | None = None

    def __call__(self, report: Following) -> None:
        first, self.first = self.first, None
        if first is not None:
            first()
        super().__call__(report)


class Watched:
    """The driver itself, asked as its worker would, and as often as a test likes."""

    def __init__(
        self, node: EmulatedNode, query_each_ns: int = 0, emit: Recorder | None = None, listings: int = 2
    ) -> None:
        self.emit = emit or Recorder()
        self.driver = SwitchDriver(library=str(node.lingqu), emit=self.emit, query_each_ns=query_each_ns)
        self.driver.open()
        for _ in range(listings):
            self.names = self.listed()

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
    fabric.switches.raise_fault(fault, deliver=False)
    watched = Watched(fabric)
    assert watched.codes(device) == [code]


def test_the_chips_are_listed_and_of_their_ports_those_with_faults(fabric: EmulatedNode) -> None:
    fabric.switches.raise_fault(FabricFault(LINK_DOWN, chip=2, port=5), deliver=False)
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
    fabric.switches.raise_fault(fault, deliver=False)
    watched = Watched(fabric)
    watched.codes("ub2/5")
    fabric.switches.clear_fault(fault)
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
    fabric.switches.raise_fault(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2, peer_port=3))
    watched = Watched(fabric)
    watched.codes("ub2/5")
    before_count = len(watched.emit.signals)
    for peer_port, assertion in ((3, FAULT), (0, RECOVERY)):
        fault = FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2, peer_port=peer_port)
        fabric.switches.send_event(fault, assertion)
    watched.emit.until(lambda: len(watched.emit.signals) == before_count + 2)
    assert watched.emit.signals[-1].assertion is Assertion.RECOVER


def test_a_port_is_listed_before_its_first_event_is_told(fabric: EmulatedNode) -> None:
    watched = Watched(fabric, query_each_ns=10**18)
    fabric.switches.raise_fault(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2))
    watched.emit.until(lambda: "ub2/5" in watched.listed())
    assert watched.emit.signals == []
    assert watched.codes("ub2/5") == ["[0x08520003,na,L2,na]"]
    assert [signal.device for signal in watched.emit.signals] == ["ub2/5"]


def test_a_fault_that_comes_just_before_the_subscription_is_told(fabric: EmulatedNode) -> None:
    watched = Watched(fabric, query_each_ns=10**18, listings=1)
    fabric.hang(None, "lq_dcmi_subscribe_fault_event")
    with ThreadPoolExecutor(1) as pool:
        listed = pool.submit(watched.listed)
        while not fabric.calls("lq_dcmi_subscribe_fault_event"):
            time.sleep(0.001)
        fabric.switches.raise_fault(FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2))
        fabric.release()
        listed.result()
    watched.emit.until(lambda: "ub2/5" in watched.listed())
    watched.codes("ub2/5")
    watched.emit.until(lambda: bool(reported_codes(watched)))
    assert reported_codes(watched) == {"[0x08520003,na,L2,na]"}


def reported_codes(watched: Watched) -> set[str]:
    """By an event, or among all that stands: whether the subscription or the library's thread came first."""
    listed = (each for each in watched.emit.reports if isinstance(each, CaughtUp))
    standing = {active.code for each in listed for active in each.active or ()}
    return standing | {signal.code for signal in watched.emit.signals}


def test_a_recovery_never_overtakes_the_fault_of_a_port_seen_for_the_first_time(
    fabric: EmulatedNode,
) -> None:
    fault = FabricFault(LINK_DOWN, chip=2, port=5, peer_device=L2)
    emit = Interrupted()
    watched = Watched(fabric, query_each_ns=10**18, emit=emit)
    fabric.switches.raise_fault(fault)
    emit.until(lambda: "ub2/5" in watched.listed())

    def recover() -> None:
        fabric.switches.clear_fault(fault)
        emit.until(lambda: watched.driver.devices().readings["events_total"] == 2)

    emit.first = recover
    watched.codes("ub2/5")
    emit.until(lambda: len(emit.signals) == 2)
    assert [signal.assertion.value for signal in emit.signals] == ["occur", "recover"]


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
        unifiedbus.open_library(str(fabric.lingqu))
    assert (refused.value.errno, refused.value.absent) == (-status, False)
    assert SWITCH_STATUS[status][1] in str(refused.value)


def test_a_machine_without_such_switches_has_nothing_to_open(fabric: EmulatedNode) -> None:
    fabric.answer(-8004, None, "lq_dcmi_init")
    with pytest.raises(Unavailable) as refused:
        unifiedbus.open_library(str(fabric.lingqu))
    assert refused.value.absent


def test_nothing_is_said_to_be_in_order_before_all_faults_were_asked_for(fabric: EmulatedNode) -> None:
    fabric.answer(-8005, None, "lq_dcmi_get_fault_info", times=3)
    watched = Watched(fabric)
    with pytest.raises(CallFailed, match="the faults of the switches are not known: lq_dcmi_get_fault_info"):
        watched.codes("ub2")
    watched.listed()
    assert watched.codes("ub2") == []
    assert [type(report) for report in watched.emit.reports] == [CaughtUp]
