"""What the daemon wants is done, whatever becomes of the connection in between."""

import os
import signal
from pathlib import Path

import pytest

from nodeagent.job.lines import AskChips, Bye, JobBegin, SupervisorHello
from nodeagent.job.model import RunEvent, RunReport, Wish
from tests.cgroups import freeze, freezer, needs
from tests.job.shell import daemon_double as daemons
from tests.job.shell.supervised import Place, lives, pids_in
from tests.waiting import WAIT_LIMIT_S, wait_until

IN_PLACE = ("--in-place", "--grace", "5s")


def forever(tmp_path: Path) -> tuple[str, ...]:
    """Notes which run it is, then its pid: who has read that may stop it."""
    return (
        "sh",
        "-c",
        f"echo $NODEAGENT_RUN $NODEAGENT_WHY >> {tmp_path}/runs; echo $$ >> {tmp_path}/pids; exec sleep 600",
    )


def test_job_is_stopped_held_and_run_again(place: Place, tmp_path: Path) -> None:
    with daemons.opened(place.socket) as daemon, place.started(*forever(tmp_path), options=IN_PLACE):
        assert daemon.received(SupervisorHello).job == ""
        begin = daemon.received(JobBegin)
        started = daemon.received_word(RunEvent.STARTED)
        [first] = pids_in(tmp_path / "pids", 1)

        daemon.want(Wish.STOP, 1, why="reset", chip="npu3", code="80E18005")
        stopped = daemon.received_word(RunEvent.STOPPED)
        assert not lives(first)
        daemon.want(Wish.HOLD, 2)
        daemon.want(Wish.RUN, 2)
        again = daemon.received_word(RunEvent.STARTED)

        pids_in(tmp_path / "pids", 2)
        assert (begin.run, begin.is_running, begin.in_place) == (1, False, True)
        assert [started.run, stopped.run, again.run] == [1, 1, 2]
        assert started.number < stopped.number < again.number
        assert (tmp_path / "runs").read_text() == "1 first\n2 healed\n"


RESETS = (
    "nodeagent-job: resets of ascend chips are only recorded, not done, on this node (reset.mode: dry-run):"
    " a fault that needs one is not repaired in place"
)


@pytest.mark.parametrize(("mode", "printed"), [("on", []), ("dry-run", [RESETS])])
def test_job_that_counts_on_resets_reports_at_its_start_that_none_is_done(
    place: Place, mode: str, printed: list[str]
) -> None:
    with daemons.opened(place.socket) as daemon:
        daemon.resets = {"ascend": mode}
        ended = place.run("true", options=IN_PLACE)
    assert ended.stderr.decode().splitlines() == printed


def test_held_job_does_not_run_before_it_may(place: Place, tmp_path: Path) -> None:
    with (
        daemons.opened(place.socket, grants=False) as daemon,
        place.started(*forever(tmp_path), options=IN_PLACE) as supervisor,
    ):
        daemon.received(JobBegin)
        daemon.want(Wish.HOLD, 1)
        supervisor.send_signal(signal.SIGUSR1)  # nobody is there to get it

        assert not (tmp_path / "pids").exists()
        daemon.want(Wish.RUN, 1)
        pids_in(tmp_path / "pids", 1)


def test_job_that_only_is_watched_is_never_stopped(place: Place, tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 3"
    with daemons.opened(place.socket) as daemon, place.started("sh", "-c", script) as supervisor:
        pids_in(tmp_path / "pid", 1)
        begin = daemon.received(JobBegin)
        daemon.want(Wish.STOP, 1)
        daemon.want(Wish.LEAVE, 1)
        (tmp_path / "go").touch()

        assert not begin.in_place
        assert supervisor.communicate(timeout=WAIT_LIMIT_S) == (b"", b"")
        assert supervisor.returncode == 3
        assert daemon.received_word(RunEvent.EXITED).status == 3
        assert daemon.received(Bye).status == 3


def test_daemon_that_comes_back_hears_what_it_had_not_taken(place: Place, tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 3"
    with place.started("sh", "-c", script, options=IN_PLACE) as supervisor:
        with daemons.opened(place.socket, takes=False) as daemon:
            began = daemon.received_word(RunEvent.STARTED)
        with daemons.opened(place.socket) as daemon:
            begin = daemon.received(JobBegin)
            repeated = daemon.received(RunReport)
            (tmp_path / "go").touch()
            ended = daemon.received(Bye)

        assert begin.is_running
        assert repeated == began
        assert ended.number > repeated.number
        assert supervisor.wait(WAIT_LIMIT_S) != 0


def test_daemon_that_begins_late_finds_the_job(place: Place, tmp_path: Path) -> None:
    with place.started(*forever(tmp_path), options=IN_PLACE):
        pids_in(tmp_path / "pids", 1)
        with daemons.opened(place.socket) as daemon:
            begin = daemon.received(JobBegin)

            assert (begin.run, begin.is_running) == (1, True)
            assert daemon.received(RunReport).what is RunEvent.STARTED


def test_daemon_that_accepts_and_says_nothing_keeps_no_job_waiting(place: Place) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(str(place.socket))
        deaf.listen()

        done = place.run("sh", "-c", "echo ran; exit 4")

    assert (done.stdout, done.stderr, done.returncode) == (b"ran\n", b"", 4)


def test_what_the_site_has_set_holds(place: Place) -> None:
    with daemons.opened(place.socket) as daemon:
        daemon.defaults = {"in-place-retries": "7", "verdict-wait": "0s"}
        daemon.limits = {"in-place-retries": "0"}

        done = place.run("sh", "-c", "exit 5")

        assert done.returncode == 5
        assert done.stderr == b"nodeagent-job: in-place-retries: the site's limit is 0, and holds\n"


def test_job_that_is_sent_away_leaves(place: Place, tmp_path: Path) -> None:
    options = (*IN_PLACE, "--placements", "3")
    with (
        daemons.opened(place.socket) as daemon,
        place.started(*forever(tmp_path), options=options) as supervisor,
    ):
        pids_in(tmp_path / "pids", 1)
        daemon.received_word(RunEvent.STARTED)
        daemon.want(Wish.LEAVE, 1, why="chip lost", isolated=True)

        assert daemon.received(Bye).status == 86
        assert supervisor.wait(WAIT_LIMIT_S) == 86


def test_samples_ask_for_the_chips(place: Place, tmp_path: Path) -> None:
    options = ("--period", "0.05")
    with daemons.opened(place.socket) as daemon, place.started(*forever(tmp_path), options=options):
        first, second = daemon.received(AskChips), daemon.received(AskChips)

        assert second.number == first.number + 1


@pytest.mark.root
@needs("freezer")
def test_unkillable_process_is_told_and_the_job_leaves_the_node(place: Place, tmp_path: Path) -> None:
    """The real thing: a process of the freezer is in state D, and KILL does not end it."""
    command = ("sh", "-c", f"sleep 600 & echo $! >> {tmp_path}/pids; wait")
    options = ("--in-place", "--grace", "0s")
    with (
        daemons.opened(place.socket) as daemon,
        freezer(f"nodeagent-test-{os.getpid()}") as group,
        (tmp_path / "stderr").open("wb") as stderr,
        place.started(*command, options=options, stdout=stderr, stderr=stderr) as supervisor,
    ):
        [frozen] = pids_in(tmp_path / "pids", 1)
        daemon.received_word(RunEvent.STARTED)
        freeze(group, frozen)

        daemon.want(Wish.STOP, 1, why="reset")

        assert daemon.received_word(RunEvent.UNKILLABLE).run == 1
        assert daemon.received(Bye).status == 86
        assert supervisor.wait(WAIT_LIMIT_S) == 86
        wait_until(lambda: lives(frozen), "the frozen one is still there")
