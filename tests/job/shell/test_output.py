"""``--logs`` and ``--errors``: the streams of a command go to files, and to those of the supervisor."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nodeagent.job.shell import output_copy
from nodeagent.job.shell.output_copy import OutputCopy
from nodeagent.job.shell.output_files import OutputFiles
from tests.job.shell.supervised import Place, below, lives, pids_in
from tests.waiting import WAIT_LIMIT_S, wait_until

RETRIES = ("--in-place-retries", "1", "--verdict-wait", "0s")
ALL_BYTES = bytes(range(256)) * 32_768
"""8 MiB, of every value."""

BURST = "import os; d = bytes(range(256)) * 32768\nwhile d: d = d[os.write(2, d):]"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "new" / "logs"


def test_each_run_has_files_of_its_own(place: Place, logs: Path) -> None:
    script = "echo out $NODEAGENT_RUN; echo err $NODEAGENT_RUN >&2; exit 3"

    done = place.run("sh", "-c", script, options=(*RETRIES, "--logs", str(logs)))

    assert done.returncode == 87
    assert {each.name: each.read_text() for each in logs.iterdir()} == {
        "run-1.out": "out 1\n",
        "run-1.err": "err 1\n",
        "run-2.out": "out 2\n",
        "run-2.err": "err 2\n",
    }
    assert done.stdout == b"out 1\nout 2\n"
    own = [each for each in done.stderr.splitlines() if not each.startswith(b"nodeagent-job:")]
    assert own == [b"err 1", b"err 2"]


@pytest.mark.parametrize("option", ["--logs", "--errors"])
def test_burst_of_any_bytes_is_whole_in_both_places(place: Place, logs: Path, option: str) -> None:
    logs.mkdir(parents=True)
    named = {"--logs": logs, "--errors": logs / "errors"}[option]

    done = place.run(sys.executable, "-c", BURST, options=(option, str(named)))

    assert done.stderr == ALL_BYTES
    assert next(logs.glob("*err*")).read_bytes() == ALL_BYTES


def test_kill_of_the_supervisor_ends_no_command_and_loses_nothing(place: Place, logs: Path) -> None:
    go, pids = place.folder / "go", place.folder / "pids"
    script = f"echo $$ > {pids}; echo first; until test -e {go}; do sleep 0.01; done; echo last; echo end >&2"

    with place.started("sh", "-c", script, options=("--logs", str(logs))) as supervisor:
        command = pids_in(pids, 1)[0]
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait(WAIT_LIMIT_S)
        go.touch()

        assert supervisor.communicate(timeout=WAIT_LIMIT_S) == (b"first\nlast\n", b"end\n")
        assert not lives(command)
    assert (logs / "run-1.out").read_bytes() == b"first\nlast\n"


def test_command_goes_on_where_nobody_reads_any_more(place: Place, logs: Path) -> None:
    script = "import time\nfor n in range(20):\n    print(n, flush=True)\n    time.sleep(0.02)"

    with place.started(sys.executable, "-c", script, options=("--logs", str(logs))) as supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.close()

        assert supervisor.wait(WAIT_LIMIT_S) == 0
    assert (logs / "run-1.out").read_text().split() == [str(n) for n in range(20)]


def test_process_that_is_left_behind_keeps_no_supervisor(place: Place, logs: Path) -> None:
    go = place.folder / "go"
    script = f"(until test -e {go}; do sleep 0.01; done; echo late) & echo done"

    with place.started("sh", "-c", script, options=("--logs", str(logs))) as supervisor:
        assert supervisor.wait(WAIT_LIMIT_S) == 0
        go.touch()
        assert supervisor.stdout is not None
        assert supervisor.stdout.read() == b"done\nlate\n"


def test_error_of_a_program_without_the_hook_is_known_though_the_standard_error_is_a_pipe(
    place: Place, tmp_path: Path
) -> None:
    done = place.run(
        sys.executable,
        "-I",
        "-c",
        "raise ValueError('bad config')",
        options=(*RETRIES, "--errors", str(tmp_path / "err")),
    )

    assert done.returncode == 87
    assert b"an error of the job itself: ValueError: bad config" in done.stderr


def test_nothing_is_done_with_what_an_earlier_placement_has_left(place: Place, logs: Path) -> None:
    for number in (1, 2):
        place.run("echo", str(number), options=("--logs", str(logs)))

    assert (logs / "run-1.out").read_text() == "2\n"
    assert (logs / "run-1.1.out").read_text() == "1\n"


def test_newest_runs_are_kept_with_the_files_of_their_ranks(tmp_path: Path) -> None:
    for number in range(1, 6):
        (tmp_path / f"run-{number}").mkdir()
        OutputFiles(tmp_path, None, kept=2).open(number, {}).close()
    (tmp_path / "notes.txt").touch()
    OutputFiles(tmp_path, None, kept=2).open(6, {}).close()

    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "notes.txt",
        "run-5.err",
        "run-5.out",
        "run-6.err",
        "run-6.out",
    ]


def test_torchrun_writes_a_file_for_each_rank_unless_the_user_has_chosen(tmp_path: Path) -> None:
    of_us = OutputFiles(tmp_path, None, kept=2).open(1, {})
    of_user = OutputFiles(tmp_path, None, kept=2).open(2, {"PET_REDIRECTS": "1"})
    of_us.close()
    of_user.close()

    assert of_us.environment == {"PET_LOG_DIR": str(tmp_path / "run-1"), "PET_TEE": "3"}
    assert of_user.environment == {}


def test_supervisors_of_one_command_line_have_files_of_their_own(place: Place, logs: Path) -> None:
    env = {"SLURM_NTASKS": "2", "SLURM_PROCID": "1"}

    place.run("true", options=("--logs", str(logs)), env=env)
    place.run("true", options=("--errors", str(logs / "err")), env=env)

    assert (logs / "task-1" / "run-1.out").exists()
    assert (logs / "err.task-1").exists()


def test_place_that_cannot_be_written_to_keeps_no_command_from_running(place: Place) -> None:
    fifo = place.folder / "fifo"
    os.mkfifo(fifo)

    done = place.run("echo", "well", options=("--errors", str(fifo)))

    assert (done.returncode, done.stdout) == (0, b"well\n")
    assert b"it is a FIFO, and a regular file is needed; run 1 writes nothing there" in done.stderr


def test_only_one_of_the_two_is_taken(place: Place) -> None:
    done = place.run("true", options=("--errors", "e", "--logs", "l"))

    assert done.returncode == 78
    assert b"give one of the two" in done.stderr


def test_reader_that_does_not_read_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_copy, "STUCK_AFTER_S", 0.1)
    written = tmp_path / "out"
    written.write_bytes(ALL_BYTES)
    read, write = os.pipe()
    kept = os.dup(1)
    try:
        os.dup2(write, 1)
        copy = OutputCopy()
    finally:
        os.dup2(kept, 1)
    copy.begin({1: (written, 0)})

    assert copy.close() is False

    os.kill(copy.pid, signal.SIGKILL)
    os.waitpid(copy.pid, 0)
    for each in (read, write, kept):
        os.close(each)


def test_copy_is_no_process_of_the_job(place: Place, logs: Path) -> None:
    """It would keep a run from ever being empty."""
    with place.started("sleep", "600", options=(*RETRIES, "--logs", str(logs))) as supervisor:
        wait_until(lambda: len(below(supervisor.pid)) == 2, "the command and the copy")
        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 143


def test_signals_of_a_scheduler_to_each_process_do_not_end_the_copy(place: Place, logs: Path) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    with place.started("sh", "-c", script, options=("--logs", str(logs))) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"ready\n"
        for pid in below(supervisor.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

        assert supervisor.stdout.read() == b"bye\n"
