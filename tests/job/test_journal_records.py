"""The journal's lines: what was written is read, anything else is an error."""

import pytest

from nodeagent.job.inputs import (
    Began,
    Emptied,
    Exited,
    Failure,
    Gathered,
    Given,
    Hang,
    Hung,
    LinkBack,
    LinkLost,
    NotRun,
    Process,
    Progressed,
    Ran,
    Signalled,
    Tick,
    Wanted,
)
from nodeagent.job.model import Counts, HangMode, Policy, Wish
from nodeagent.job.session.journal_records import JournalError, Record, decode, encode

EVERY_KIND: tuple[Given, ...] = (
    Began(
        boot_id="b",
        policy=Policy(in_place=True, hang=HangMode.RESTART, placements=3, grace_s=0.5),
        counts=Counts(best=17, signature="ValueError: é"),
        survivors=(Process(pid=7, start_time=8), Process(pid=9, start_time=10)),
    ),
    Wanted(wish=Wish.LEAVE, run=2, code="80E18005", chip="npu3", isolated=True, handling="RESCHEDULE"),
    LinkLost(why="refused"),
    LinkBack(job="slurm:7.0"),
    Ran(run=1, process=Process(pid=1, start_time=2)),
    NotRun(run=1, error=2, why="no such file"),
    Exited(run=1, failure=Failure(status=1, tail="a\nb\x00c")),
    Emptied(run=1),
    Hung(run=1, what=Hang.CONFIRMED, why="quiet", since_s=1800.5, acts=False),
    Gathered(run=1, path="/x", digest="d"),
    Progressed(run=1, number=12),
    Signalled(number=15),
    Tick(),
)


def test_each_kind_is_read_as_it_was_written() -> None:
    lines = [encode(at_ns, given) for at_ns, given in enumerate(EVERY_KIND)]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert decode(lines) == tuple(Record(at_ns=at, given=given) for at, given in enumerate(EVERY_KIND))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "line 2: not JSON"),
        (b"[]", "line 2: given: one of began, "),
        (b'{"at_ns":1,"given":"magic"}', "line 2: given: one of began, wanted"),
        (b'{"at_ns":"1","given":"tick"}', "line 2: at_ns: int, not '1'"),
        (b'{"at_ns":1,"given":"emptied"}', "line 2: emptied: .*'run'"),
        (b'{"at_ns":1,"given":"emptied","run":true}', "line 2: run: int, not True"),
        (b'{"at_ns":1,"given":"wanted","run":1,"wish":"fly"}', "line 2: wish: one of run, stop, hold, leave"),
        (b"", "line 2: not JSON"),
    ],
)
def test_a_bad_line_in_the_middle_is_an_error_with_its_number(line: bytes, says: str) -> None:
    with pytest.raises(JournalError, match=f"^{says}"):
        decode([encode(0, Tick()), line + b"\n", encode(2, Tick())])
