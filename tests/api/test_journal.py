"""Events as journal entries and as lines: readable, complete, and harmless when nobody takes them."""

import asyncio
import io
import os
import threading
from dataclasses import replace
from typing import Any

import pytest

from nodeagent.core.model import EventKind, Level
from nodeagent.journal import fields, line, line_writer, priority, write_events
from nodeagent.store.records import StoredEvent
from nodeagent.system.streams import runs_under_journal
from tests.api.samples import event
from tests.api.stage import Stage
from tests.waiting import until


def stored(number: int = 1, **changes: Any) -> StoredEvent:
    return StoredEvent(seq=number, wall_ns=1_700_000_000_000_000_000, event=replace(event(), **changes))


def test_a_line_says_where_what_how_bad_and_what_follows() -> None:
    assert (
        line(stored()) == "gpu0         raised        XID_79 SeparateNPU ISOLATE GPU has fallen off the bus"
    )


def test_a_line_marks_what_is_not_what_it_seems() -> None:
    marked = stored(injected=True, userspace=True, unknown=True, count=3)
    assert line(marked).endswith("GPU has fallen off the bus [injected] [userspace] [unknown] [x3]")


def test_an_event_without_a_code_says_why() -> None:
    started = StoredEvent(
        seq=1, wall_ns=1, event=event("node", Level.NOT_HANDLE, EventKind.STARTED, code="", why="0.1.0")
    )
    assert line(started) == "node         started       ALLOW 0.1.0"


def test_nothing_in_an_event_can_steer_a_terminal() -> None:
    assert "\x1b" not in line(stored(name="\x1b[2J\nfake"))


def test_a_name_that_the_terminal_has_no_letters_for_is_written_all_the_same() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="latin-1")

    line_writer(stream)(stored(name="\x1bdie 昇腾"))

    assert b"\\ufffddie \\u6607\\u817e" in written.getvalue()


def test_a_journal_entry_has_a_field_for_each_thing_one_would_search_for() -> None:
    assert fields(stored(7)) == {
        "SYSLOG_IDENTIFIER": "nodeagent",
        "PRIORITY": "3",
        "NODEAGENT_SEQ": "7",
        "NODEAGENT_KIND": "raised",
        "NODEAGENT_DEVICE": "gpu0",
        "NODEAGENT_DEVICE_ID": "gpu0-id",
        "NODEAGENT_LEVEL": "SeparateNPU",
        "NODEAGENT_VERDICT": "ISOLATE",
        "NODEAGENT_HANDLING": "RESCHEDULE",
        "NODEAGENT_CODE": "XID_79",
        "NODEAGENT_NAME": "GPU has fallen off the bus",
        "NODEAGENT_CONDITION_ID": "gpu0-id:XID_79:1",
        "NODEAGENT_CONDITION_LEVEL": "SeparateNPU",
        "NODEAGENT_SOURCE": "kmsg",
        "NODEAGENT_EVIDENCE": '{"line": "NVRM: Xid (PCI:0000:3b:00): 79"}',
    }


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (stored(), 3),
        (StoredEvent(seq=1, wall_ns=1, event=event(level=Level.PRE_SEPARATE_NPU)), 4),
        (StoredEvent(seq=1, wall_ns=1, event=event(level=Level.SUB_HEALTH)), 5),
        (stored(kind=EventKind.CLEARED), 6),
        (stored(injected=True), 6),
        (stored(kind=EventKind.STARTED, code=""), 6),
        (stored(kind=EventKind.VERDICT_CHANGED, code=""), 3),
    ],
)
def test_priority_follows_the_verdict(stored: StoredEvent, expected: int) -> None:
    assert priority(stored) == expected


def test_a_file_gets_plain_whole_lines() -> None:
    stream = io.StringIO()
    line_writer(stream)(stored(name="x" * 200))
    written = stream.getvalue()
    assert written.endswith("x" * 200 + "\n")
    assert "\x1b" not in written


def test_a_terminal_gets_lines_cut_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    ours, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        line_writer(stream)(stored(name="x" * 200))
        written = os.read(ours, 4096).decode()
    os.close(ours)
    (text,) = written.splitlines()
    assert len(text.replace("\x1b[2m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")) == 80
    assert "XID_79 SeparateNPU ISOLATE" in text


def test_whether_the_journal_is_behind_a_descriptor_is_what_systemd_says() -> None:
    reading, writing = os.pipe()
    status = os.fstat(writing)
    named = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
    assert runs_under_journal(named, writing)
    assert not runs_under_journal({}, writing)
    assert not runs_under_journal({"JOURNAL_STREAM": "8:1"}, writing)
    os.close(reading)
    os.close(writing)


async def test_every_event_after_a_number_is_written_once_and_in_order(stage: Stage) -> None:
    written: list[int] = []
    await stage.commit(event(), event())
    writing = asyncio.create_task(
        write_events(stage.feed, stage.ledger, 1, lambda stored: written.append(stored.seq))
    )
    await stage.commit(event(), event())
    await until(lambda: len(written) == 3)
    assert written == [2, 3, 4]
    writing.cancel()


async def test_a_writer_that_hangs_holds_up_nothing_else(stage: Stage) -> None:
    released = threading.Event()

    def hang(_: StoredEvent) -> None:
        released.wait()

    writing = asyncio.create_task(write_events(stage.feed, stage.ledger, 0, hang))
    await stage.commit(event())
    async with stage.client() as client:
        assert len(await client.conditions()) == 1
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    released.set()


async def test_a_failure_to_write_is_reported_once_and_the_next_events_are_tried(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []

    def fail(stored: StoredEvent) -> None:
        tried.append(stored.seq)
        raise BrokenPipeError(32, "Broken pipe")

    writing = asyncio.create_task(write_events(stage.feed, stage.ledger, 0, fail))
    for _ in range(3):
        await stage.commit(event())
        await until(lambda: len(tried) == len(stage.feed.recent(0) or ()))
    writing.cancel()
    assert tried == [1, 2, 3]
    assert caplog.messages == ["events cannot be written: [Errno 32] Broken pipe"]
