"""What the callback is given, and what it leaves for the next poll."""

import ctypes
import threading
from typing import Any

import pytest

from nodeagent.core.model import Assertion
from nodeagent.drivers.ascend.abi import DcmiEvent
from nodeagent.drivers.ascend.events import (
    MAX_PARTS_REMEMBERED,
    ON_ITS_WAY_NS,
    SETTLES_NS,
    ChipEvents,
    Listener,
)
from tests.drivers.ascend.recorder import Recorder

HBM, CODE = 0x80E01801, "80E01801"
OTHER_CODE = "80C98000"
PORT, OTHER_PORT = (0x83, 0, 0, 0), (0x83, 1, 0, 0)
OCCUR, RECOVER, ONCE = Assertion.OCCUR, Assertion.RECOVER, Assertion.ONCE


def event(**given: Any) -> Any:
    sent = DcmiEvent()
    fields = {"event_id": HBM, "deviceid": 3, "severity": 2, "assertion": 1, **given}
    sent.type = fields.pop("type", 0)
    for name, value in fields.items():
        setattr(sent.event_t, name, value)
    return ctypes.pointer(sent)


@pytest.fixture
def emit() -> Recorder:
    return Recorder()


@pytest.fixture
def listener(emit: Recorder) -> Listener:
    listener = Listener(emit.enqueue)
    listener.expect({3: ChipEvents("npu5")})
    return listener


def test_an_event_is_told_of_the_device_that_has_its_logic_id(listener: Listener, emit: Recorder) -> None:
    listener.take(
        event(
            node_type=0x70,
            node_id=1,
            sub_node_type=2,
            sub_node_id=3,
            event_serial_num=11,
            notify_serial_num=12,
            alarm_raised_time=1_790_000_000_123,
            event_name=b"HBM uncorrectable",
            additional_info=b"bank 7",
        )
    )
    (signal,) = emit.signals
    assert (signal.device, signal.code, signal.assertion, signal.severity) == ("npu5", CODE, OCCUR, 2)
    assert signal.evidence == {
        "node_type": "112",
        "node_id": "1",
        "sub_node_type": "2",
        "sub_node_id": "3",
        "event_serial": "11",
        "notify_serial": "12",
        "alarm_time_ms": "1790000000123",
        "event_name": "HBM uncorrectable",
        "additional_info": "bank 7",
    }


@pytest.mark.parametrize(
    "nonsense",
    [
        {"event_id": 0},
        {"event_id": 0xFFFFFFFF},
        {"assertion": 3},
        {"assertion": 255},
        {"deviceid": 4},
        {"deviceid": 0xFFFF},
        {"type": 1},
    ],
    ids=str,
)
def test_an_event_that_makes_no_sense_is_refused_and_counted(
    listener: Listener, emit: Recorder, nonsense: dict[str, int]
) -> None:
    listener.take(event(**nonsense))
    assert emit.signals == []
    assert (listener.received, listener.refused) == (1, 1)


def test_no_event_at_all_is_refused_and_counted(listener: Listener) -> None:
    listener.take(ctypes.POINTER(DcmiEvent)())
    assert listener.refused == 1


def test_an_unknown_severity_is_left_out(listener: Listener, emit: Recorder) -> None:
    listener.take(event(severity=200))
    assert emit.signals[0].severity is None
    assert listener.severity(CODE) is None


def test_the_severity_of_a_code_is_remembered(listener: Listener) -> None:
    listener.take(event(severity=3))
    assert listener.severity(CODE) == 3


def test_texts_without_an_end_are_cut(listener: Listener, emit: Recorder) -> None:
    listener.take(event(event_name=b"\xffx" * 128, additional_info=b"y" * 32))
    evidence = emit.signals[0].evidence
    assert evidence["event_name"] == "\N{REPLACEMENT CHARACTER}x" * 128
    assert evidence["additional_info"] == "y" * 32


def test_the_list_may_lag_behind_an_occurrence() -> None:
    chip = ChipEvents("npu5")
    chip.note(CODE, OCCUR, PORT, at_ns=0)
    assert chip.settle(set(), SETTLES_NS) == ({CODE}, set())
    assert chip.settle(set(), SETTLES_NS + 1) == (set(), set())


def test_the_list_may_lag_behind_a_recovery() -> None:
    chip = ChipEvents("npu5")
    chip.note(CODE, RECOVER, PORT, at_ns=0)
    assert chip.settle({CODE}, SETTLES_NS) == (set(), set())
    assert chip.settle({CODE}, SETTLES_NS + 1) == ({CODE}, set())


def test_a_list_must_not_overtake_an_event_that_is_on_its_way() -> None:
    chip = ChipEvents("npu5")
    chip.note(CODE, OCCUR, PORT, at_ns=0)
    assert chip.settle({CODE, OTHER_CODE}, ON_ITS_WAY_NS) == ({CODE, OTHER_CODE}, {CODE})
    assert chip.settle({CODE, OTHER_CODE}, ON_ITS_WAY_NS + 1) == ({CODE, OTHER_CODE}, set())


def test_a_list_that_is_ahead_of_an_event_waits_for_it() -> None:
    chip = ChipEvents("npu5")
    event = threading.Timer(0.02, chip.note, (CODE, OCCUR, PORT, 0))
    event.start()
    chip.expect({CODE}, limit_s=60)
    assert chip.settle({CODE}, 0) == ({CODE}, {CODE})


def test_an_event_that_was_lost_is_not_waited_for_for_long() -> None:
    chip = ChipEvents("npu5")
    chip.expect({CODE}, limit_s=0.01)
    assert chip.settle({CODE}, 0) == ({CODE}, set())


def test_a_one_off_event_says_nothing_of_the_list() -> None:
    chip = ChipEvents("npu5")
    chip.note(CODE, ONCE, PORT, at_ns=0)
    assert chip.settle(set(), 1) == (set(), set())


def test_a_code_is_over_when_the_last_part_that_had_it_recovers(listener: Listener, emit: Recorder) -> None:
    for node_id, assertion in ((0, 1), (1, 1), (0, 0), (1, 0)):
        listener.take(event(node_type=0x83, node_id=node_id, assertion=assertion))
    assert [signal.assertion for signal in emit.signals] == [OCCUR, OCCUR, RECOVER]
    assert listener.refused == 0


def test_no_library_has_more_parts_of_a_chip_remembered_than_a_chip_has() -> None:
    chip = ChipEvents("npu5")
    for number in range(MAX_PARTS_REMEMBERED + 10):
        chip.note(CODE, OCCUR, (0x83, number & 0xFF, number >> 8, 0), at_ns=0)
    assert chip.ports(CODE) == MAX_PARTS_REMEMBERED


def test_ports_are_counted_while_the_code_stands() -> None:
    chip = ChipEvents("npu5")
    chip.note(CODE, OCCUR, PORT, at_ns=0)
    chip.note(CODE, OCCUR, OTHER_PORT, at_ns=0)
    assert chip.ports(CODE) == 2
    chip.settle(set(), SETTLES_NS + 1)
    assert chip.ports(CODE) == 0
