"""A run that is to end ends whole: whoever has left its group, ignores TERM or is stopped.

A defect of the supervisor itself ends no job.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nodeagent.job.shell import procfs
from nodeagent.job.shell.tree import send
from tests.cgroups import freeze, freezer, needs
from tests.job.shell.supervised import Place, below, lives, pids_in, stat_of
from tests.waiting import WAIT_LIMIT_S, wait_until

MANAGED = ("--in-place", "--grace", "1s")
"""A policy, so that the supervisor ends the run and not only passes the signal on."""

OBEYS = "sleep 600"
IGNORES_TERM = "trap '' TERM; while :; do sleep 600; done"


def job_of(tmp_path: Path, *children: str) -> tuple[str, ...]:
    """A command with these children; each writes its pid."""
    parts = [f"{child} & echo $! >> {tmp_path}/pids" for child in children]
    return ("sh", "-c", "; ".join([*parts, f"echo $$ >> {tmp_path}/pids", "wait"]))


ESCAPED = "setsid sh -c 'sleep 601 & sleep 602'"
ORPHAN = "sh -c 'setsid sh -c \"sleep 603 & exec sleep 604\" & exit 0'"


@pytest.mark.parametrize(
    "children",
    [
        [OBEYS, OBEYS],
        [f'sh -c "{IGNORES_TERM}"'],
        [ESCAPED, ORPHAN],
        [OBEYS, ESCAPED, ORPHAN, f'setsid sh -c "{IGNORES_TERM}"'],
    ],
    ids=["obeys", "ignores TERM", "has left its group", "all of these"],
)
def test_everybody_below_ends_with_the_run(place: Place, tmp_path: Path, children: list[str]) -> None:
    command = job_of(tmp_path, *children)
    with place.started(*command, options=MANAGED) as supervisor:
        pids_in(tmp_path / "pids", len(children) + 1)
        everybody = below(supervisor.pid)

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM
        assert [pid for pid in everybody if lives(pid)] == []


def test_stopped_process_ends_as_well(place: Place, tmp_path: Path) -> None:
    script = f"trap 'echo saved; exit 0' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    with place.started("sh", "-c", script, options=MANAGED) as supervisor:
        [pid] = pids_in(tmp_path / "pid", 1)
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: (stat_of(pid) or [""])[0] == "T", "the command is stopped")

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.communicate(timeout=WAIT_LIMIT_S)[0] == b"saved\n"
        assert not lives(pid)


def test_second_signal_kills_at_once(place: Place, tmp_path: Path) -> None:
    command = job_of(tmp_path, f'sh -c "{IGNORES_TERM}"')
    with place.started(*command, options=["--in-place", "--grace", "1h"]) as supervisor:
        pids = pids_in(tmp_path / "pids", 2)
        supervisor.send_signal(signal.SIGTERM)
        wait_until(lambda: not lives(pids[1]), "the command, which obeys, has ended")

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM
        assert not lives(pids[0])


def test_supervisor_whose_words_nobody_reads_still_ends(place: Place) -> None:
    """The pipe of its standard error is full, and stays so."""
    read, write = os.pipe2(os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    options = ["--in-place-retries", "1", "--verdict-wait", "0s"]
    with place.started("sh", "-c", "exit 3", options=options, stderr=write) as supervisor:
        os.close(write)

        assert supervisor.wait(WAIT_LIMIT_S) == 87
    os.close(read)


def test_process_ends_where_python_knows_no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was built on the headers of an old kernel."""
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(signal, "pidfd_send_signal")
    with subprocess.Popen(["sleep", "606"]) as child:
        found = procfs.stat(child.pid)
        assert found is not None

        send(found.process, signal.SIGKILL)

        assert child.wait(WAIT_LIMIT_S) == -signal.SIGKILL


def test_what_a_script_had_started_before_the_supervisor_is_left_alone(place: Place, tmp_path: Path) -> None:
    supervised = " ".join(f"'{word}'" for word in place.words(["sleep", "600"], MANAGED))
    script = f"sleep 605 & echo $! > {tmp_path}/pids; exec {supervised}"
    supervisor = subprocess.Popen(["sh", "-c", script], env=place.environment)
    [before] = pids_in(tmp_path / "pids", 1)
    wait_until(lambda: len(below(supervisor.pid)) == 2, "the command runs")

    supervisor.send_signal(signal.SIGTERM)

    assert supervisor.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM
    assert lives(before)
    os.kill(before, signal.SIGKILL)


FORKS = """\
import os, sys, time
# Each child leaves its parent and its session, and goes on as the next generation.
while True:
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(0.002)
    else:
        os.wait()
        os._exit(0)
"""


def test_processes_that_keep_forking_away_are_caught(place: Place, tmp_path: Path) -> None:
    script = f"{sys.executable} -c '{FORKS}' & echo $! > {tmp_path}/pids; {IGNORES_TERM}"
    with place.started("sh", "-c", script, options=["--in-place", "--grace", "0s"]) as supervisor:
        pids_in(tmp_path / "pids", 1)

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM


@pytest.mark.root
def test_as_first_process_of_a_pid_namespace_it_reaps_all(place: Place, tmp_path: Path) -> None:
    """The orphan would stay a zombie if nobody reaped it."""
    script = (
        "sh -c 'sh -c \"sleep 0.1\" & exit 0'; sleep 0.5;"
        " for each in /proc/[0-9]*; do [ \"$each\" = /proc/self ] || cut -d' ' -f2,3 $each/stat; done"
    )
    words = place.words(["sh", "-c", script])

    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *words],
        env=place.environment,
        capture_output=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )

    shown = done.stdout.decode()
    assert done.returncode == 0
    assert "(sh)" in shown
    assert " Z" not in shown


@pytest.mark.root
def test_as_first_process_of_a_pid_namespace_it_takes_the_schedulers_signal(
    place: Place, tmp_path: Path
) -> None:
    words = place.words(["sh", "-c", f"echo $$ >> {tmp_path}/pids; {IGNORES_TERM}"], MANAGED)
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", *words], env=place.environment)
    assert pids_in(tmp_path / "pids", 1) == [2]
    [first, *_] = below(outer.pid)

    os.kill(first, signal.SIGTERM)

    assert outer.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM


@pytest.mark.root
@needs("freezer")
def test_scheduler_that_ends_a_job_with_an_unkillable_process_is_not_kept_waiting(
    place: Place, tmp_path: Path
) -> None:
    """Its streams are files: a pipe would stay open as long as the frozen process."""
    command = job_of(tmp_path, OBEYS)
    with (
        freezer(f"nodeagent-{os.getpid()}") as group,
        (tmp_path / "said").open("wb") as said,
        place.started(*command, options=MANAGED, stdout=said, stderr=said) as supervisor,
    ):
        [frozen, _] = pids_in(tmp_path / "pids", 2)
        freeze(group, frozen)

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM
        words = "nodeagent-job: processes of the job are left that cannot be killed\n"
        assert words in (tmp_path / "said").read_text()
        assert lives(frozen)


DEFECT = """\
import sys
from nodeagent.job.main import main
from nodeagent.job.watching.watching import Watching
def tick(self, now_ns):
    if self._run:
        raise KeyError("seeded")
Watching.tick = tick
sys.exit(main(sys.argv[1:]))
"""


def test_command_goes_on_gets_its_signals_and_gives_its_status(place: Place, tmp_path: Path) -> None:
    script = f"trap 'exit 21' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    supervisor = subprocess.Popen(
        [sys.executable, "-c", DEFECT, "run", "--", "sh", "-c", script],
        env=place.environment,
        stderr=subprocess.PIPE,
    )
    pids_in(tmp_path / "pid", 1)

    assert supervisor.stderr is not None
    line = supervisor.stderr.readline().decode()
    supervisor.send_signal(signal.SIGTERM)

    assert line.startswith("nodeagent-job: a defect of the supervisor; it only waits for the command now: ")
    assert "KeyError: 'seeded'" in line
    assert supervisor.wait(WAIT_LIMIT_S) == 21
    supervisor.stderr.close()


def test_beat_that_is_not_understood_is_told_once(place: Place) -> None:
    script = (
        "import time; from nodeagent_job import beat; [(beat(phase='x'), time.sleep(0.2)) for _ in range(3)]"
    )

    done = place.run(sys.executable, "-c", script)

    assert done.returncode == 0
    assert done.stderr.decode() == (
        "nodeagent-job: a beat of the program cannot be read (reported once):"
        " phase: one of train, eval, checkpoint, compile, load, not 'x'\n"
    )
