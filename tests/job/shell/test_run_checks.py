"""Before its command is started, a run waits for storage, for ports of its chips, and for their memory."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.job.lines import ChipReading
from nodeagent.job.model import RunEvent, Wish
from tests.job.shell.daemon_double import DaemonDouble, opened
from tests.job.shell.hung_storage import FUSE, hung_storage
from tests.job.shell.supervised import Place, below
from tests.waiting import WAIT_LIMIT_S, wait_until

GIB = 1 << 30
FREE = ChipReading(
    name="npu3",
    known=True,
    memory_used_bytes=3 * GIB,
    memory_total_bytes=64 * GIB,
    ports={"hccs": True, "ub0": False},
)
IN_PLACE = ("--in-place", "--in-place-retries", "1", "--verdict-wait", "0s", "--period", "0.2")


@pytest.fixture
def daemon(place: Place) -> Iterator[DaemonDouble]:
    with opened(place.socket) as double:
        double.chips = (FREE,)
        yield double


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Path]:
    if os.getuid() != 0 or not FUSE.exists():
        pytest.skip("needs root and /dev/fuse")
    with hung_storage(tmp_path / "hung") as folder:
        yield folder


# ---------------------------------------------------------------------- storage


def test_paths_that_answer_delay_nothing(place: Place) -> None:
    done = place.run("echo", "well", options=("--need-path", "/proc/self/stat", "--need-path", "/,/tmp"))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"well\n", b"")


def test_run_begins_once_its_path_is_there(place: Place) -> None:
    path = place.folder / "data"

    with place.started("echo", "well", options=("--need-path", str(path))) as supervisor:
        assert supervisor.stderr is not None
        assert supervisor.stderr.readline().decode() == (
            f"nodeagent-job: run 1 waits: {path}: No such file or directory\n"
        )
        path.mkdir()

        assert supervisor.communicate(timeout=WAIT_LIMIT_S)[0] == b"well\n"
    assert supervisor.returncode == 0


@pytest.mark.parametrize(
    ("policy", "status"),
    [((), 75), (("--placements", "2"), 75), (("--placements", "2", "--state", "used"), 87)],
    ids=["watched", "placements", "no placement left"],
)
def test_job_runs_elsewhere_if_its_path_does_not_come(
    place: Place, policy: tuple[str, ...], status: int
) -> None:
    if status == 87:
        policy = (*policy[:-1], str(place.state))
        for _ in range(2):
            place.run("true", options=(*policy, "--need-path", "/nonexistent", "--heal-timeout", "1s"))

    done = place.run("true", options=(*policy, "--need-path", "/nonexistent", "--heal-timeout", "1s"))

    assert done.returncode == status
    assert b"not there within 1 s: /nonexistent: No such file or directory" in done.stderr


def test_storage_that_hangs_hangs_no_supervisor(place: Place, hung: Path) -> None:
    options = ("--need-path", str(hung), "--path-time", "1s", "--heal-timeout", "2s")

    done = place.run("echo", "never", options=options)

    assert (done.returncode, done.stdout) == (75, b"")
    assert f"run 1 waits: {hung} does not answer within 1 s".encode() in done.stderr


def test_stuck_process_is_one_and_is_left_behind(place: Place, hung: Path) -> None:
    """KILL does not end it, and another one would not be better off."""
    options = ("--need-path", str(hung), "--path-time", "1s")

    with place.started("echo", "never", options=options) as supervisor:
        assert supervisor.stderr is not None
        supervisor.stderr.readline()
        stuck = below(supervisor.pid)
        time.sleep(5)
        assert below(supervisor.pid) == stuck
        assert len(stuck) == 1
        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 143


@pytest.mark.parametrize("policy", [(), ("--in-place",)], ids=["watched", "acts"])
def test_signal_ends_a_job_that_waits(place: Place, policy: tuple[str, ...]) -> None:
    with place.started("true", options=(*policy, "--need-path", "/nonexistent")) as supervisor:
        assert supervisor.stderr is not None
        next(line for line in supervisor.stderr if b"waits" in line)
        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 143


# ---------------------------------------------------------------------- chips


def test_run_waits_until_the_memory_of_its_chips_is_free(place: Place, daemon: DaemonDouble) -> None:
    daemon.chips = (replace(FREE, memory_used_bytes=60 * GIB),)
    daemon.holders = (17,)

    with place.started("echo", "well", options=IN_PLACE) as supervisor:
        assert supervisor.stderr is not None
        assert supervisor.stderr.readline() == (
            b"nodeagent-job: run 1 waits until memory is free: npu3 60.0 of 64.0 GiB (process 17)\n"
        )
        daemon.chips = (FREE,)

        assert supervisor.communicate(timeout=WAIT_LIMIT_S)[0] == b"well\n"


def test_memory_that_stays_in_use_keeps_no_run_from_beginning(place: Place, daemon: DaemonDouble) -> None:
    daemon.chips = (replace(FREE, memory_used_bytes=60 * GIB),)

    done = place.run("echo", "well", options=(*IN_PLACE, "--memory-wait", "0s"))

    assert done.stdout == b"well\n"
    assert b"run 1 begins with memory in use after 0 s: npu3 60.0 of 64.0 GiB" in done.stderr


def test_port_that_was_up_has_to_be_up(place: Place, daemon: DaemonDouble) -> None:
    """The other one never was."""
    gate, said = place.folder / "gate", place.folder / "stderr"
    script = f"until test -e {gate}; do sleep 0.01; done; rm {gate}; exit 1"

    with said.open("wb") as stderr, place.started("sh", "-c", script, options=IN_PLACE, stderr=stderr):
        daemon.received_word(RunEvent.STARTED)
        daemon.chips = (replace(FREE, ports={"hccs": False, "ub0": False}),)
        gate.touch()
        daemon.received_word(RunEvent.EXITED)
        daemon.want(Wish.RUN, 2)
        wait_until(lambda: "run 2 waits: port hccs of npu3 is down\n" in said.read_text(), "run 2 waits")
        daemon.chips = (FREE,)

        assert daemon.received_word(RunEvent.STARTED).run == 2


def test_node_is_left_if_a_port_stays_down(place: Place, daemon: DaemonDouble) -> None:
    daemon.chips = (replace(FREE, ports_down=("eth2",)),)

    done = place.run("true", options=(*IN_PLACE, "--heal-timeout", "1s"))

    assert done.returncode == 86
    assert b"run 1 waits: eth2, a port of npu3, is down" in done.stderr


def test_daemon_that_does_not_answer_keeps_no_run_from_beginning(place: Place, daemon: DaemonDouble) -> None:
    daemon.answers_chips = False

    assert place.run("echo", "well", options=IN_PLACE).stdout == b"well\n"
