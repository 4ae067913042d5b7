"""Processes that may be ended for a reset: real ones, asked first and killed then, and nobody else."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nodeagent.drivers.holders import holder_of
from nodeagent.reset.ending import end
from nodeagent.reset.folder import Process
from tests.reset.conftest import Desk

PROCFS = Path("/proc")
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
)
OBEDIENT = "import time; print(flush=True); time.sleep(600)"

Job = subprocess.Popen[str]


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    """One that ends when it is asked, one that does not listen."""
    with ExitStack() as stack:
        begun = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
            )
            for code in (OBEDIENT, DEAF)
        ]
        for job in begun:
            stack.callback(job.kill)
            assert job.stdout is not None
            job.stdout.readline()
        yield begun


def named(job: Job, older_by: int = 0) -> Process:
    """``older_by``: clock ticks by which the one that is meant began before."""
    holder = holder_of(PROCFS, job.pid)
    assert holder is not None
    return Process(pid=job.pid, start_time=holder.start_time - older_by, command="job")


def test_each_is_asked_and_who_does_not_listen_is_killed(jobs: list[Job]) -> None:
    steps: list[str] = []
    obedient, deaf = jobs
    assert end([named(job) for job in jobs], 1.0, PROCFS, steps.append) == ()
    assert (obedient.wait(10), deaf.wait(10)) == (-15, -9)
    assert steps == [f"SIGTERM to job ({obedient.pid}), job ({deaf.pid})", f"SIGKILL to job ({deaf.pid})"]


def test_another_process_that_got_the_pid_is_let_alone(jobs: list[Job]) -> None:
    obedient, _ = jobs
    assert end([named(obedient, older_by=1)], 0.1, PROCFS, print) == ()
    assert obedient.poll() is None


def test_one_that_has_gone_is_no_hindrance(jobs: list[Job]) -> None:
    obedient, _ = jobs
    process = named(obedient)
    obedient.kill()
    obedient.wait(10)
    assert end([process], 0.1, PROCFS, print) == ()


def test_a_job_is_ended_before_its_devices_are_reset(desk: Desk, jobs: list[Job]) -> None:
    obedient, _ = jobs
    result = desk.do(ended_first=(named(obedient),), grace_s=5.0)
    assert obedient.wait(10) == -15
    assert [step.what for step in result.steps][:2] == ["evidence", f"SIGTERM to job ({obedient.pid})"]


def test_where_resets_are_forbidden_nobody_is_ended(desk: Desk, jobs: list[Job]) -> None:
    obedient, _ = jobs
    Path(desk.request.do_not_touch).touch()
    result = desk.do(ended_first=(named(obedient),), grace_s=5.0)
    assert (result.state, obedient.poll()) == ("refused", None)
