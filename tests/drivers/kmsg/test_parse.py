"""Records of the kernel log, taken apart."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.drivers.kmsg.parse import MalformedRecord, Record, parse, printable, split, unescape


def test_plain_record() -> None:
    assert parse(b"6,339,5140900,-;NET: Registered protocol family 10\n") == Record(
        seq=339,
        facility=0,
        priority=6,
        boottime_us=5140900,
        message="NET: Registered protocol family 10",
        continuation={},
    )


def test_line_of_user_space_shows_its_facility() -> None:
    record = parse(b"11,7,9,-;NVRM: Xid (PCI:0000:3b:00): 79\n")
    assert (record.facility, record.priority) == (1, 3)


def test_continuation_lines_are_a_dictionary() -> None:
    raw = b"3,5,6,-;pcieport 0000:00:01.0: AER\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0\n"
    assert parse(raw).continuation == {"SUBSYSTEM": "pci", "DEVICE": "+pci:0000:00:01.0"}


def test_fields_of_a_later_kernel_are_passed_over() -> None:
    assert parse(b"6,1,2,c,caller=T17,more;text;with;semicolons\n").message == "text;with;semicolons"


@pytest.mark.parametrize(
    ("flags", "continues"), [(b"-", False), (b"c", True), (b"+", True), (b"c,caller=T17", True), (b"", False)]
)
def test_the_rest_of_another_line_is_marked(flags: bytes, continues: bool) -> None:
    assert parse(b"4,1,2," + flags + b";,mems_allowed=0").continues is continues


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"a\x09b", "a\tb"),
        (rb"caf\xc3\xa9", "café"),
        (rb"back\x5cslash", "back\\slash"),
        (rb"stray \xff byte", "stray \\xff byte"),
        (rb"\x5cx41 stays", "\\x41 stays"),
        (rb"no \q escape", "no \\q escape"),
    ],
)
def test_escapes_are_undone_once(raw: bytes, text: str) -> None:
    assert unescape(raw) == text


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "no 'priority,seq,stamp,flags;'"),
        (b"Linux version 6.1", "no 'priority,seq,stamp,flags;'"),
        (b"6,12;short", "no 'priority,seq,stamp,flags;'"),
        (b"6,twelve,0,-;text", "not a number"),
        (b"6,-1,0,-;text", "a number out of range"),
        (b"6,99999999999999999999,0,-;text", "a number out of range"),
    ],
)
def test_malformed_record_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(MalformedRecord, match=reason):
        parse(raw)


@given(st.binary())
def test_whatever_the_bytes_are_it_is_a_record_or_malformed(raw: bytes) -> None:
    with contextlib.suppress(MalformedRecord):
        parse(raw)


def test_one_read_of_a_fifo_may_hold_several_records() -> None:
    first, second = b"6,1,2,-;one\n KEY=value", b"6,2,3,-;two"
    assert list(split(first + b"\n" + second + b"\n")) == [first, second]
    assert list(split(second)) == [second]


def test_control_characters_are_shown_escaped() -> None:
    assert printable("red \x1b[31malert\n") == "red \\x1b[31malert\\x0a"
