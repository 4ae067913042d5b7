"""A supervisor is killed at any point, and another one is started: it goes on where the first one was."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from nodeagent.job.lines import Bye
from nodeagent.job.model import Counts, Policy, RunEvent, Wish
from nodeagent.job.session.values import Signalled
from nodeagent.job.shell.record import RecoveredSession
from tests.job.session.play import Play
from tests.job.shell import daemon_double as daemons
from tests.job.shell.supervised import Place, lives, pids_in
from tests.waiting import WAIT_LIMIT_S, wait_until

RETRIES = ("--in-place-retries", "3", "--verdict-wait", "0s", "--grace", "1s")


def journal(place: Place) -> list[str]:
    """What stands in the journal, one word a line."""
    file = place.state / "journal.jsonl"
    lines = file.read_text().splitlines()[1:] if file.exists() else []
    return [json.loads(line)["given"] for line in lines]


def counting(tmp_path: Path, then: str) -> tuple[str, ...]:
    """Notes its pid, which run it is, and every other one of its kind that lives at the same time."""
    script = f"""
        for other in $(cat {tmp_path}/pids 2>/dev/null); do
            grep -q '^State:.[^ZX]' /proc/$other/status 2>/dev/null && echo $other >> {tmp_path}/twice
        done
        echo $$ >> {tmp_path}/pids
        echo $NODEAGENT_RUN $NODEAGENT_WHY >> {tmp_path}/runs
        {then}
    """
    return ("sh", "-c", script)


def runs(tmp_path: Path) -> list[str]:
    return (tmp_path / "runs").read_text().splitlines()


LEFTOVER = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done'"

POINTS = {
    "the command runs": ("exec sleep 600", ["ran"]),
    "the command ignores TERM": ("trap '' TERM; while :; do sleep 1; done", ["ran"]),
    "a child has left its group": ("setsid sleep 600 & echo $! >> $0/pids; exec sleep 600", ["ran"]),
    "only a child is left": (f"{LEFTOVER} & echo $! >> $0/pids; exit 1", ["ran", "exited"]),
    "the pause after a failure": ("exit 1", ["ran", "exited", "emptied"]),
}


@pytest.mark.parametrize(("then", "until"), POINTS.values(), ids=POINTS.keys())
def test_what_survived_is_ended_first_and_the_counts_go_on(
    place: Place, tmp_path: Path, then: str, until: list[str]
) -> None:
    options = ("--state", str(place.state), *RETRIES)
    command = (*counting(tmp_path, f"[ $NODEAGENT_RUN != 1 ] || {{ {then}; }}; exit 0"), str(tmp_path))
    with place.started(*command, options=options, stdout=None, stderr=None) as first:
        wait_until(lambda: set(until) <= set(journal(place)), "the journal has come so far")
        os.kill(first.pid, signal.SIGKILL)
        first.wait(WAIT_LIMIT_S)

        before = pids_in(tmp_path / "pids", 1)
        again = place.run(*command, options=options)

    assert again.returncode == 0
    assert not any(lives(pid) for pid in before)
    assert [each.split()[0] for each in runs(tmp_path)] == ["1", "2"]
    assert not (tmp_path / "twice").exists()


def has_failed(place: Place, runs: int) -> bool:
    return journal(place).count("emptied") >= runs


def test_retries_are_not_given_anew(place: Place, tmp_path: Path) -> None:
    """Killed after each failure; as many runs as there are without that."""
    options = ("--state", str(place.state), *RETRIES)
    command = counting(tmp_path, "exit 1")
    for killed in range(3):
        with place.started(*command, options=options) as supervisor:
            wait_until(partial(has_failed, place, killed + 1), "one more run has failed")
            os.kill(supervisor.pid, signal.SIGKILL)

    assert place.run(*command, options=options).returncode == 87
    assert [each.split()[0] for each in runs(tmp_path)] == ["1", "2", "3", "4"]


def test_run_that_the_journal_does_not_know_yet_is_found_by_its_environment(
    place: Place, tmp_path: Path
) -> None:
    """As if the supervisor had been killed between the start of the command and the line about it."""
    options = ("--state", str(place.state), *RETRIES)
    command = counting(tmp_path, "[ -e $0.go ] || exec sleep 600; exit 0")
    command = (*command, str(tmp_path / "second"))
    with place.started(*command, options=options) as first:
        [orphan] = pids_in(tmp_path / "pids", 1)
        wait_until(lambda: "ran" in journal(place), "the start is in the journal")
        os.kill(first.pid, signal.SIGKILL)
        first.wait(WAIT_LIMIT_S)
        file = place.state / "journal.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if '"ran"' not in line))
        (tmp_path / "second.go").touch()

        again = place.run(*command, options=options)

    assert again.returncode == 0
    assert not lives(orphan)
    assert not (tmp_path / "twice").exists()


def test_torn_last_line_is_cut_off(place: Place, tmp_path: Path) -> None:
    options = ("--state", str(place.state), *RETRIES)
    command = counting(tmp_path, "[ $NODEAGENT_RUN != 1 ] || exec sleep 600; exit 0")
    with place.started(*command, options=options) as first:
        wait_until(lambda: "ran" in journal(place), "the start is in the journal")
        os.kill(first.pid, signal.SIGKILL)
        first.wait(WAIT_LIMIT_S)
        with (place.state / "journal.jsonl").open("a") as opened:
            opened.write('{"at_ns":12')

        assert place.run(*command, options=options).returncode == 0
    assert [each.split()[0] for each in runs(tmp_path)] == ["1", "2"]


def test_journal_that_is_not_understood_is_moved_aside_and_the_survivor_ended(
    place: Place, tmp_path: Path
) -> None:
    options = ("--state", str(place.state), *RETRIES)
    command = (*counting(tmp_path, "[ -e $0.go ] || exec sleep 600; exit 0"), str(tmp_path / "second"))
    with place.started(*command, options=options) as first:
        [orphan] = pids_in(tmp_path / "pids", 1)
        wait_until(lambda: "ran" in journal(place), "the start is in the journal")
        os.kill(first.pid, signal.SIGKILL)
        first.wait(WAIT_LIMIT_S)
        file = place.state / "journal.jsonl"
        file.write_text(file.read_text().replace('"given":"ran"', '"given":"flown"'))
        (tmp_path / "second.go").touch()

        again = place.run(*command, options=options)

    assert again.returncode == 0
    assert "it is moved aside, and the job begins as if there were none" in again.stderr.decode()
    assert not lives(orphan)


def test_reports_that_were_not_taken_are_said_by_the_next(place: Place, tmp_path: Path) -> None:
    options = ("--state", str(place.state), *RETRIES)
    command = counting(tmp_path, "[ $NODEAGENT_RUN != 1 ] || exec sleep 600; exit 0")
    with (
        daemons.opened(place.socket, takes=False) as daemon,
        place.started(*command, options=options) as first,
    ):
        said = daemon.received_word(RunEvent.STARTED)
        os.kill(first.pid, signal.SIGKILL)
        first.wait(WAIT_LIMIT_S)
    with daemons.opened(place.socket) as daemon, place.started(*command, options=options) as second:
        again = daemon.received_word(RunEvent.STARTED)
        ended = daemon.received_word(RunEvent.EXITED)
        daemon.want(Wish.RUN, 2)
        of_second = daemon.received_word(RunEvent.STARTED)

        assert again == said
        assert said.number < ended.number < of_second.number
        assert daemon.received(Bye).status == 0
        assert second.wait(WAIT_LIMIT_S) == 0


def test_two_supervisors_never_share_a_folder(place: Place, tmp_path: Path) -> None:
    options = ("--state", str(place.state))
    command = counting(tmp_path, "exec sleep 600")
    with place.started(*command, options=options) as first:
        pids_in(tmp_path / "pids", 1)

        second = place.run(*command, options=options)

        assert second.returncode == 78
        assert f"{place.state}: supervisor {first.pid} on " in second.stderr.decode()
        assert len(runs(tmp_path)) == 1


def test_counts_reach_the_next_placement(place: Place, tmp_path: Path) -> None:
    options = ("--state", str(place.state), "--placements", "5", "--unconditional", "--verdict-wait", "0s")
    show = f"echo $MA_SCHEDULE_CNT $MA_PROC_START_CNT >> {tmp_path}/counts; exit 9"

    statuses = [place.run("sh", "-c", show, options=options).returncode for _ in range(4)]

    assert statuses == [75, 75, 75, 87]
    assert (tmp_path / "counts").read_text().splitlines() == ["1 1", "2 1", "3 1", "4 1"]


def test_torn_counts_are_moved_aside_and_told(place: Place) -> None:
    place.state.mkdir()
    (place.state / "run_state.json").write_text('{"format": "nodeagent-jo')

    done = place.run("true", options=("--state", str(place.state)))

    assert done.returncode == 0
    assert "it may be torn" in done.stderr.decode()
    assert (place.state / "run_state.torn.json").read_text() == '{"format": "nodeagent-jo'
    assert json.loads((place.state / "run_state.json").read_text())["schedule"] == 1


def test_job_that_a_signal_ended_runs_when_it_is_begun_anew() -> None:
    """Its supervisor was killed while it said goodbye."""
    ended, failed = Play(Policy(in_place=True)), Play(Policy(in_place=True))
    for play in (ended, failed):
        play.begin_without_daemon()
        play.ran()
    ended.give(Signalled(number=signal.SIGTERM))
    ended.exited(signal=signal.SIGTERM)
    failed.exited(3)
    failed.wait_for_deadline()

    assert (ended.left(), RecoveredSession(session=ended.session).has_left(Counts())) == (143, False)
    assert (failed.left(), RecoveredSession(session=failed.session).has_left(Counts())) == (3, True)
