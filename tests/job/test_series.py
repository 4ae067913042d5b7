import json

import pytest

from nodeagent.job.codec import CodecError
from nodeagent.job.sample import Beat, ChipSample, ProcessSample, ProgramPhase, RunSample
from nodeagent.job.series import Header, SeriesRow, header_line, read, row_line

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
