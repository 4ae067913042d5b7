"""The example of a training job: its result does not show where it was stopped, and it fails as told."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.waiting import WAIT_LIMIT_S, Lines, wait_until

TRAIN = ROOT / "packaging" / "examples" / "jobs" / "train.py"


@contextmanager
def training(folder: Path, *words: str) -> Iterator[tuple["subprocess.Popen[str]", Lines]]:
    """Fast, in a session of its own, as a supervisor starts it. What is left of it is killed."""
    command = [
        sys.executable,
        str(TRAIN),
        "--checkpoints",
        str(folder),
        "--step-time",
        "0.01",
        "--every",
        "5",
        *words,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as job:
        assert job.stdout is not None
        try:
            yield job, Lines(job.stdout)
        finally:
            end(job)


def end(job: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait(WAIT_LIMIT_S)


def result(folder: Path) -> tuple[str, str]:
    newest = max(folder.glob("checkpoint-*.json"))
    return newest.name, newest.read_text()


def test_a_run_that_was_killed_goes_on_from_its_checkpoint_and_ends_with_the_same_result(
    tmp_path: Path,
) -> None:
    with training(tmp_path / "whole", "--steps", "40") as (whole, _):
        assert whole.wait(WAIT_LIMIT_S) == 0
    with training(tmp_path / "killed", "--steps", "40") as (_, lines):
        lines.until("step 10: checkpoint")
    with training(tmp_path / "killed", "--steps", "40") as (again, lines):
        started = lines.until("rank 0 of 4")
        assert again.wait(WAIT_LIMIT_S) == 0

    assert re.search(r", run 1: from step (10|15|20|25|30|35|40)$", started)
    assert result(tmp_path / "killed") == result(tmp_path / "whole")
    assert result(tmp_path / "whole")[0] == "checkpoint-000040.json"


@pytest.mark.parametrize(
    ("order", "status", "said"),
    [
        ("2 exit 7", 7, ""),
        ("0 exit 3", 3, ""),
        ("0 exit 4 at 7", 4, "step 5:"),
        ("1 raise", 1, "ValueError: hidden_size"),
        ("3 jump", 1, "'3 jump'"),
    ],
)
def test_the_first_rank_that_fails_ends_all_with_its_status(
    tmp_path: Path, order: str, status: int, said: str
) -> None:
    (tmp_path / "orders").write_text(order)
    with training(tmp_path) as (job, lines):
        assert job.wait(WAIT_LIMIT_S) == status
        assert said in "".join(lines)


@pytest.mark.parametrize(("order", "state"), [("1 hang", "S"), ("1 spin", "R")])
def test_one_rank_stands_still_and_the_others_wait_for_it(tmp_path: Path, order: str, state: str) -> None:
    with training(tmp_path) as (job, lines):
        pids = ranks(lines)
        lines.until("checkpoint")
        (tmp_path / "orders").write_text(order)
        wait_until(lambda: no_steps(tmp_path), "a job that stands still")
        wait_until(lambda: (state_of(pids[0]), state_of(pids[1])) == ("S", state), f"a rank in {state}")
        assert job.poll() is None


def test_a_rank_can_ignore_the_signal_to_end_and_a_process_escape_from_the_group(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("1 ignore-term\n2 escape\n")
    with training(tmp_path) as (job, lines):
        pids = ranks(lines)
        lines.until("checkpoint")
        children = Path(f"/proc/{pids[2]}/task/{pids[2]}/children")
        escaped = int(wait_until(children.read_text, "the process that escapes"))
        os.killpg(job.pid, signal.SIGTERM)
        assert job.wait(WAIT_LIMIT_S) == -signal.SIGTERM
        wait_until(lambda: not Path(f"/proc/{pids[3]}").exists(), "the end of a rank that obeys")
        left = state_of(pids[1]), os.getsid(escaped)
        os.kill(escaped, signal.SIGKILL)

    assert left == ("S", escaped)


def ranks(lines: Lines) -> dict[int, int]:
    """The pid of each."""
    found = (re.search(r"rank (\d) of 4, pid (\d+)", lines.until("rank ")) for _ in range(4))
    return {int(each[1]): int(each[2]) for each in found if each}


def no_steps(folder: Path) -> bool:
    """For as long as fifty took."""
    before = result(folder)
    time.sleep(0.5)
    return result(folder) == before


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
