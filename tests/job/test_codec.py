"""The counts that outlive a placement, as a file.

The journal's lines: what was written is read, anything else is an error.
"""

import json

import pytest

from nodeagent.job.codec import CodecError
from nodeagent.job.model import Counts, HangMode, Policy, RunRequest, Wish
from nodeagent.job.sample import Beat, ChipSample, ProcessSample, ProgramPhase, RunSample, StepTime
from nodeagent.job.series import Header, SeriesRow, header_line, read, row_line
from nodeagent.job.session.values import (
    CommandExited,
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
    RunFailure,
    SessionBegan,
    SessionInput,
    SessionTick,
    Signalled,
    Slowed,
    SlowStage,
)
from nodeagent.job.shell.journal import JournalRecord, decode_records, encode_record
from nodeagent.job.shell.record import decode_counts, encode_counts

COUNTS = Counts(
    schedule=3, placements=2, placements_in_row=1, retries=4, hangs=1, best=900, signature="ValueError: x"
)


@pytest.mark.parametrize("counts", [COUNTS, Counts()])
def test_the_counts_are_read_as_they_were_written(counts: Counts) -> None:
    assert decode_counts(encode_counts(counts, job="train"), job="train") == counts


def test_no_torn_file_is_read_as_counts() -> None:
    whole = encode_counts(COUNTS, job="train").rstrip()
    for length in range(len(whole)):
        with pytest.raises(CodecError):
            decode_counts(whole[:length], job="train")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("nodeagent-job-run-state", "something", "^format: "),
        ('"version": 1', '"version": 2', "^version: 1, not 2"),
        ('"placements": 2', '"placements": "2"', "^placements: a whole number, not '2'"),
        ('"placements": 2', '"placements": -2', "^placements: a number from 0, not -2"),
        ('"retries"', '"retires"', "^retries: missing"),
    ],
)
def test_a_foreign_file_is_an_error_that_says_why(old: str, new: str, says: str) -> None:
    with pytest.raises(CodecError, match=says):
        decode_counts(encode_counts(COUNTS, job="train").replace(old, new), job="train")


def test_the_counts_of_another_job_are_not_taken() -> None:
    with pytest.raises(CodecError, match=r"^job: 'train', not 'other'; give each job a --state of its own"):
        decode_counts(encode_counts(COUNTS, job="other"), job="train")


HEADER = Header(name="a run", T_min=30, period_s=10, kind="training")
ROW = SeriesRow(
    sample=RunSample(
        t_s=10.5,
        processes=(
            ProcessSample(pid=7, ppid=1, holds=True, state="D", cpu_s=1.5, rchar=10, chips=("npu0",)),
            ProcessSample(pid=8, ppid=7, launcher=True),
        ),
        chips=(
            ChipSample(name="npu0", util=3.0, handling="RESCHEDULE"),
            ChipSample(name="npu1", known=False),
        ),
    ),
    beats=(Beat(t_s=9.0, step=4, phase=ProgramPhase.EVAL),),
    times=(StepTime(t_s=9.5, step=4, compute_s=0.8, rank=1, pid=7),),
)


def test_what_was_written_is_read_again() -> None:
    made = read([header_line(HEADER), row_line(ROW)], "f")
    assert (made.header, made.rows) == (HEADER, (ROW,))


def test_the_form_is_that_of_the_documents() -> None:
    assert json.loads(row_line(ROW)) == {
        "t_s": 10.5,
        "ranks": [
            {"pid": 7, "ppid": 1, "holds": True, "state": "D", "cpu_s": 1.5, "rchar": 10, "chips": ["npu0"]},
            {"pid": 8, "ppid": 7, "launcher": True},
        ],
        "chips": [
            {"name": "npu0", "util": 3.0, "handling": "RESCHEDULE"},
            {"name": "npu1", "known": False},
        ],
        "beats": [{"t_s": 9.0, "step": 4, "phase": "eval"}],
        "times": [{"t_s": 9.5, "step": 4, "compute_s": 0.8, "rank": 1, "pid": 7}],
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON: "),
        ("[]", "an object, not []"),
        ('{"ranks": []}', "t_s: missing"),
        ('{"t_s": 1, "rank": []}', "rank: unknown; one of t_s, ranks, chips, beats"),
        ('{"t_s": true}', "t_s: a number, not True"),
        ('{"t_s": NaN}', "t_s: a finite number, not nan"),
        ('{"t_s": 0}', "t_s: greater than 0, not 0"),
        ('{"t_s": 1, "ranks": {}}', "ranks: a list, not {}"),
        ('{"t_s": 1, "ranks": [7]}', "ranks[0]: an object, not 7"),
        ('{"t_s": 1, "ranks": [{"pid": 1}]}', "ranks[0].ppid: missing"),
        ('{"t_s": 1, "ranks": [{"pid": 1, "ppid": 1.5}]}', "ranks[0].ppid: a whole number, not 1.5"),
        ('{"t_s": 1, "ranks": [{"pid": 1, "ppid": 1, "holds": 1}]}', "ranks[0].holds: true or false, not 1"),
        ('{"t_s": 1, "chips": [{"name": 3}]}', "chips[0].name: a text, not 3"),
        (
            '{"t_s": 1, "beats": [{"t_s": 1, "phase": "rest"}]}',
            "beats[0].phase: one of train, eval, checkpoint, compile, load, not 'rest'",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line_and_field(line: str, said: str) -> None:
    with pytest.raises(CodecError) as refused:
        read([header_line(HEADER), '{"t_s": 0}\n', line], "f.jsonl")
    assert str(refused.value).startswith(f"f.jsonl: line 3: {said}")


def test_a_header_names_its_field_too() -> None:
    with pytest.raises(CodecError) as refused:
        read(['{"name": "x"}'], "f.jsonl")
    assert str(refused.value) == "f.jsonl: line 1: T_min: missing"


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
    CommandExited(run=1, failure=RunFailure(status=1, tail="a\nb\x00c")),
    Emptied(run=1),
    Hung(run=1, what=HangStage.CONFIRMED, why="quiet", since_s=1800.5, acts=False),
    Slowed(run=1, what=SlowStage.FOUND, who="rank 2", why="twice the time", evidence={"score": "0.50"}),
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
