"""The journal's lines: what was written is read, anything else is an error."""

import pytest

from nodeagent.job.codec import CodecError
from nodeagent.job.model import Counts, HangMode, Policy, RunRequest, Wish
from nodeagent.job.session.values import (
    CommandExited,
    CommandFailure,
    Emptied,
    Gathered,
    HangStage,
    Hung,
    LinkBack,
    LinkLost,
    NotRun,
    ProcessId,
    Progressed,
    Ran,
    SessionBegan,
    SessionInput,
    SessionTick,
    Signalled,
)
from nodeagent.job.shell.journal import JournalRecord, decode_records, encode_record

EVERY_KIND: tuple[SessionInput, ...] = (
    SessionBegan(
        boot_id="b",
        policy=Policy(in_place=True, hang=HangMode.RESTART, placements=3, grace_s=0.5),
        counts=Counts(best=17, signature="ValueError: é"),
        survivors=(ProcessId(pid=7, start_time=8), ProcessId(pid=9, start_time=10)),
    ),
    RunRequest(wish=Wish.LEAVE, run=2, code="80E18005", chip="npu3", isolated=True, handling="RESCHEDULE"),
    LinkLost(why="refused"),
    LinkBack(job="slurm:7.0"),
    Ran(run=1, process=ProcessId(pid=1, start_time=2)),
    NotRun(run=1, error=2, why="no such file"),
    CommandExited(run=1, failure=CommandFailure(status=1, tail="a\nb\x00c")),
    Emptied(run=1),
    Hung(run=1, what=HangStage.CONFIRMED, why="quiet", since_s=1800.5, acts=False),
    Gathered(run=1, path="/x", digest="d"),
    Progressed(run=1, number=12),
    Signalled(number=15),
    SessionTick(),
)


def test_each_kind_is_read_as_it_was_written() -> None:
    lines = [encode_record(at_ns, given) for at_ns, given in enumerate(EVERY_KIND)]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert decode_records(lines) == tuple(
        JournalRecord(at_ns=at, given=given) for at, given in enumerate(EVERY_KIND)
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "line 2: not JSON"),
        (b"[]", r"line 2: an object, not \[\]"),
        (b'{"at_ns":1,"given":"magic"}', "line 2: given: one of began, wanted"),
        (b'{"at_ns":"1","given":"tick"}', "line 2: at_ns: a whole number, not '1'"),
        (b'{"at_ns":1,"given":"emptied"}', "line 2: run: missing"),
        (b'{"at_ns":1,"given":"emptied","run":true}', "line 2: run: a whole number, not True"),
        (b'{"at_ns":1,"given":"wanted","run":1,"wish":"fly"}', "line 2: wish: one of run, stop, hold, leave"),
        (b"", "line 2: not JSON"),
    ],
)
def test_a_bad_line_in_the_middle_is_an_error_with_its_number(line: bytes, says: str) -> None:
    with pytest.raises(CodecError, match=f"^{says}"):
        decode_records([encode_record(0, SessionTick()), line + b"\n", encode_record(2, SessionTick())])
