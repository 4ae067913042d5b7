"""What a program says of itself arrives, and what it says wrongly harms nobody."""

import os
import socket
from pathlib import Path

import pytest

import nodeagent_job
from nodeagent.job.sample import Beat, ProgramPhase, StepTime
from nodeagent.job.watching.beats import BeatError, BeatSocket, parse


@pytest.mark.parametrize(
    ("words", "beat"),
    [
        (b"step=7", Beat(t_s=1.5, step=7)),
        (b"step=0 phase=eval", Beat(t_s=1.5, step=0, phase=ProgramPhase.EVAL)),
        (b" checkpoint=12  step=3\n", Beat(t_s=1.5, step=3, checkpoint=12)),
        (b"phase=compile", Beat(t_s=1.5, phase=ProgramPhase.COMPILE)),
    ],
)
def test_beat_has_step_phase_and_checkpoint_in_any_order(words: bytes, beat: Beat) -> None:
    assert parse(words, 1.5) == beat


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (b"step=7 compute_s=0.81 rank=2", StepTime(t_s=1.5, step=7, compute_s=0.81, rank=2, pid=9)),
        (
            b"group=stage0 rank=0 compute_s=3 step=1",
            StepTime(t_s=1.5, step=1, compute_s=3.0, rank=0, group="stage0", pid=9),
        ),
    ],
)
def test_step_time_has_its_step_rank_and_group_and_the_pid_of_its_sender(text: bytes, time: StepTime) -> None:
    assert parse(text, 1.5, pid=9) == time


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (b"", "empty"),
        (b"step=7 compute_s=0.8", "rank: missing, next to compute_s"),
        (b"compute_s=0.8 rank=1", "step: missing, next to compute_s"),
        (b"step=7 rank=1 compute_s=nan", "compute_s: seconds from 0 to 1e+06, not 'nan'"),
        (b"step=7 rank=1 compute_s=-1", "compute_s: seconds from 0 to 1e+06, not '-1'"),
        (
            b"step=7 rank=1 compute_s=1 phase=train",
            "'phase=train': step=NUMBER, compute_s=SECONDS, rank=NUMBER or group=NAME",
        ),
        (b"step=-1", "step: a whole number from 0 with at most 18 digits, not '-1'"),
        (b"step=1e3", "step: a whole number from 0 with at most 18 digits, not '1e3'"),
        (b"step=" + b"9" * 19, f"step: a whole number from 0 with at most 18 digits, not '{'9' * 19}'"),
        (b"phase=idle", "phase: one of train, eval, checkpoint, compile, load, not 'idle'"),
        (b"step=1 step=2", "step: given twice"),
        (b"loss=0.3", "'loss=0.3': step=NUMBER, phase=NAME or checkpoint=NUMBER"),
        (b"\xff\xfe", r"not ASCII: b'\xff\xfe'"),
    ],
)
def test_what_is_no_beat_is_refused_with_its_reason(words: bytes, why: str) -> None:
    with pytest.raises(BeatError) as refused:
        parse(words, 0.0)
    assert str(refused.value) == why


def test_beats_of_a_program_arrive_and_bad_ones_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = BeatSocket(str(tmp_path / "beat"))
    monkeypatch.setenv("NODEAGENT_BEAT", beats.path)

    nodeagent_job.beat(step=1)
    nodeagent_job.beat(phase="dancing")
    nodeagent_job.beat(step=2, phase="checkpoint", checkpoint=1)

    assert beats.take(9.0) == [
        Beat(t_s=9.0, step=1),
        Beat(t_s=9.0, step=2, phase=ProgramPhase.CHECKPOINT, checkpoint=1),
    ]
    assert (beats.bad, beats.last_bad) == (
        1,
        "phase: one of train, eval, checkpoint, compile, load, not 'dancing'",
    )
    beats.close()
    assert not Path(beats.path).exists()


def test_step_time_is_sent_next_to_a_beat_with_the_rank_of_the_environment_and_the_sender_s_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a supervisor of an earlier version cannot read is a datagram of its own."""
    beats = BeatSocket(str(tmp_path / "beat"))
    monkeypatch.setenv("NODEAGENT_BEAT", beats.path)
    monkeypatch.setenv("RANK", "3")

    nodeagent_job.beat(step=1, phase="train", compute_s=0.5)
    nodeagent_job.beat(step=2, compute_s=0.25, group="stage1")
    nodeagent_job.beat(step=3, compute_s="much")  # type: ignore[arg-type]
    monkeypatch.delenv("RANK")
    nodeagent_job.beat(step=4, compute_s=0.25)

    assert beats.take(9.0) == [
        Beat(t_s=9.0, step=1),
        StepTime(t_s=9.0, step=1, compute_s=0.5, rank=3, pid=os.getpid()),
        StepTime(t_s=9.0, step=2, compute_s=0.25, rank=3, group="stage1", pid=os.getpid()),
    ]
    assert beats.bad == 0
    beats.close()


def test_program_without_a_supervisor_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODEAGENT_BEAT", raising=False)
    nodeagent_job.beat(step=1)
    monkeypatch.setenv("NODEAGENT_BEAT", "/nonexistent/beat")
    nodeagent_job.beat(step=1)
    monkeypatch.setenv("NODEAGENT_BEAT", "/" + "x" * 200)
    nodeagent_job.beat(step=1)


def test_supervisor_that_does_not_read_holds_up_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blocked send would hang this test."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "beat"))
        monkeypatch.setenv("NODEAGENT_BEAT", str(tmp_path / "beat"))
        for step in range(5000):
            nodeagent_job.beat(step=step)


def test_socket_of_a_dead_supervisor_is_taken_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(tmp_path / "beat"))

    beats = BeatSocket(str(tmp_path / "beat"))

    assert beats.take(0.0) == []
    beats.close()


def test_helper_imports_almost_nothing() -> None:
    """It goes into every training program."""
    source = Path(nodeagent_job.__file__).read_text()

    assert {line for line in source.splitlines() if line.startswith(("import ", "from "))} == {
        "from __future__ import annotations",
        "import os",
        "import select",
        "import socket",
        "import time",
        "from typing import NamedTuple",
    }
