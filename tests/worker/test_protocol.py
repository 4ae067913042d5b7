"""The wire: what is said arrives, and whatever else arrives is an error and no more."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.model import Kind
from nodeagent.system.streams import LineSplitter
from nodeagent.wire import (
    MAX_LINE_BYTES,
    Active,
    Batch,
    CaughtUp,
    Configure,
    Cursor,
    Device,
    Devices,
    DeviceUser,
    Hello,
    Lost,
    Missing,
    Pattern,
    Patterns,
    Poll,
    ProtocolError,
    Reply,
    Report,
    Request,
    Signal,
    Unavailable,
    decode_report,
    decode_request,
    encode,
)

ORDERS: list[Request] = [
    Configure(
        driver="kmsg",
        boot_id="b",
        config={"path": "/dev/kmsg", "trust_userspace": False},
        patterns=(Pattern(id="P", code="X_{n}", regex=r"(?P<n>\d)", device="node"),),
        cursor=Cursor(boot_id="a", seq=9),
        skip=("npu3",),
    ),
    Poll(id=1, devices=("*", "npu0")),
    Patterns(patterns=()),
]
REPORTS: list[Report] = [
    Hello(devices=(Device(device="npu0", kind=Kind.CHIP, vendor="ascend"),), follows=True),
    Unavailable(reason="no library", absent=True, missing=(Missing(device="npu0", reason="in PCI"),)),
    Unavailable(reason="the library answers -8002", errno=-8002),
    Devices(missing=(Missing(device="npu1", reason="PCI shows it"),)),
    Batch(signals=(Signal(device="node", code="OOM", evidence={"line": "ä\t"}),), lost=3, cursor=12),
    Reply(
        id=1,
        device="npu0",
        begun_ns=5,
        took_ns=6,
        active=(Active(code="A", severity=3),),
        readings={"temperature_celsius": 40.5},
        holders=(DeviceUser(pid=1, start_time=2, command="python"),),
    ),
    CaughtUp(begun_ns=1, active=()),
    CaughtUp(begun_ns=1, active=(Active(code="X", evidence={"a": "b"}),), device="node", complete=False),
    Lost(reason="gone", errno=5),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
def test_order_arrives_as_it_was_sent(order: Request) -> None:
    line = encode(order)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_request(line[:-1]) == order


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_report_arrives_as_it_was_sent(report: Report) -> None:
    assert decode_report(encode(report)[:-1]) == report


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type":"nonsense"}',
        b'{"type":"batch","surprise":1}',
        b'{"type":"batch","lost":-1}',
        b'{"type":"batch","cursor":99999999999999999999999}',
        b'{"type":"batch","signals":[{"device":"two words","code":"X"}]}',
        b'{"type":"batch","signals":[{"device":"","code":"X"}]}',
        b'{"type":"batch","signals":[{"device":"node","code":"X","count":0}]}',
        b'{"type":"batch","signals":[{"device":"node","code":"X","severity":4}]}',
        b'{"type":"batch","signals":[{"device":"node","code":"X","assertion":"perhaps"}]}',
        b'{"type":"hello","devices":[{"device":"d","kind":"toaster","vendor":"v"}]}',
        b'{"type":"lost","reason":"' + b"x" * 3000 + b'"}',
    ],
)
def test_nonsense_is_an_error_that_shows_its_beginning(line: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_report(line)
    assert repr(line[:80]) in str(caught.value)


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_it_is_a_message_or_an_error(line: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_report(line)


def test_message_too_long_for_the_other_side_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match=r"Patterns of \d+ bytes; at most"):
        encode(Patterns(patterns=(Pattern(id="P", code="X", regex="x" * MAX_LINE_BYTES, device="node"),)))


@given(st.lists(st.binary(max_size=30)), st.integers(1, 40))
def test_lines_are_the_same_however_the_stream_is_cut(parts: list[bytes], max_bytes: int) -> None:
    whole = LineSplitter(max_bytes)
    expected = whole.feed(b"".join(parts))
    cut = LineSplitter(max_bytes)
    assert [line for part in parts for line in cut.feed(part)] == expected
    assert cut.oversized == whole.oversized


@given(st.lists(st.binary(max_size=30)), st.integers(0, 40))
def test_every_line_is_given_or_counted(parts: list[bytes], max_bytes: int) -> None:
    stream = b"".join(parts)
    splitter = LineSplitter(max_bytes)
    *ended, _ = stream.split(b"\n")
    assert splitter.feed(stream) == [line for line in ended if len(line) <= max_bytes]
    assert splitter.oversized == sum(len(line) > max_bytes for line in ended)
