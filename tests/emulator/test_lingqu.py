"""The double of liblingqu-dcmi.so, asked as its header says."""

import ctypes
import queue
from collections.abc import Callable
from typing import Any, ClassVar

from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.switches import CHIP_LEVEL, FabricFault
from tests.waiting import wait_until

MakeNode = Callable[[str], EmulatedNode]


class Filter(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("filterFlag", ctypes.c_uint32),
        ("eventTypeId", ctypes.c_uint32),
        ("eventId", ctypes.c_uint32),
        ("severity", ctypes.c_uint8),
        ("chipId", ctypes.c_uint32),
    ]


class Event(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("eventType", ctypes.c_uint32),
        ("subType", ctypes.c_uint32),
        ("peerportDevice", ctypes.c_uint16),
        ("peerportId", ctypes.c_uint16),
        ("switchChipid", ctypes.c_uint16),
        ("switchPortid", ctypes.c_uint16),
        ("severity", ctypes.c_uint8),
        ("assertion", ctypes.c_uint8),
        ("rest", ctypes.c_uint8 * 94),
    ]


Callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(Event))
PORT_DOWN = FabricFault(0x08520003, chip=2, port=17, peer_device=2, peer_port=5)
MEMORY = FabricFault(0x00F103B0, chip=6, sub_type=155904)


def load(node: EmulatedNode) -> ctypes.CDLL:
    library = ctypes.CDLL(str(node.lingqu))
    library.lq_dcmi_subscribe_fault_event.argtypes = [Filter, Callback]
    return library


def test_it_is_to_be_initialised_first_and_once(make_node: MakeNode) -> None:
    library = load(make_node("16xA3"))

    assert library.lq_dcmi_get_fault_nums(ctypes.byref(ctypes.c_uint())) == -8009
    assert library.lq_dcmi_get_version(ctypes.byref(ctypes.c_uint()), ctypes.byref(ctypes.c_uint())) == 0
    assert (library.lq_dcmi_init(), library.lq_dcmi_init()) == (0, -8017)


def test_a_subscription_takes_the_place_of_one_with_the_same_filter(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    node.set_node("fabric_poll_ms", 0)
    library = load(node)
    library.lq_dcmi_init()
    received: queue.Queue[int] = queue.Queue()
    callbacks = [Callback(lambda _, number=number: received.put(number)) for number in (1, 2)]
    for callback in callbacks:
        assert library.lq_dcmi_subscribe_fault_event(Filter(), callback) == 0

    node.switches.raise_fault(MEMORY)
    node.switches.clear_fault(MEMORY)

    assert (received.get(timeout=60), received.get(timeout=60)) == (2, 2)


def test_what_stands_is_listed_as_far_as_there_is_room(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    library = load(node)
    node.set_node("fabric_poll_ms", 0)
    node.switches.raise_fault(PORT_DOWN)
    node.switches.raise_fault(MEMORY)
    library.lq_dcmi_init()
    count, events = ctypes.c_uint(), (Event * 4)()

    assert library.lq_dcmi_get_fault_info(1, ctypes.byref(count), events) == 0
    assert (count.value, events[0].eventType, events[0].switchPortid, events[1].eventType) == (
        1,
        0x08520003,
        17,
        0,
    )
    node.switches.clear_fault(PORT_DOWN)
    wait_until(lambda: listed(library) == [(6, CHIP_LEVEL)])


def listed(library: ctypes.CDLL) -> list[tuple[int, int]]:
    count, events = ctypes.c_uint(), (Event * 4)()
    library.lq_dcmi_get_fault_info(4, ctypes.byref(count), events)
    return [(event.switchChipid, event.switchPortid) for event in events[: count.value]]


def test_what_no_event_told_is_known_to_another_process_only(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    node.set_node("fabric_poll_ms", 0)
    library = load(node)
    library.lq_dcmi_init()
    node.switches.raise_fault(PORT_DOWN, deliver=False)
    node.switches.raise_fault(MEMORY)
    wait_until(lambda: listed(library) == [(6, CHIP_LEVEL)])


def test_a_subscriber_is_told_what_its_filter_lets_through(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    node.set_node("fabric_poll_ms", 0)
    library = load(node)
    library.lq_dcmi_init()
    received: queue.Queue[tuple[int, ...]] = queue.Queue()

    def put(event: Any) -> None:
        seen = event.contents
        received.put((seen.eventType, seen.subType, seen.peerportDevice, seen.switchPortid, seen.assertion))

    callback = Callback(put)
    assert library.lq_dcmi_subscribe_fault_event(Filter(filterFlag=8, chipId=2), callback) == 0
    node.switches.raise_fault(MEMORY)
    node.switches.raise_fault(PORT_DOWN)
    node.switches.clear_fault(PORT_DOWN)

    assert received.get(timeout=60) == (0x08520003, 0xFFFFFFFF, 2, 17, 1)
    assert received.get(timeout=60) == (0x08520003, 0xFFFFFFFF, 2, 17, 0)
    assert library.lq_dcmi_subscribe_fault_event(Filter(filterFlag=8, chipId=2), Callback()) == 0
    assert library.lq_dcmi_subscribe_fault_event(Filter(filterFlag=8, chipId=2), Callback()) == -8016
    assert library.lq_dcmi_subscribe_fault_event(Filter(filterFlag=16), callback) == -8015
