"""``job run --in-step``: one node of a step, as a real process, with the files of the step in its folder."""

import os
import signal
import sys
from pathlib import Path

import pytest

from nodeagent.job.lines import JobBegin
from nodeagent.job.model import Counts, RunReason, Wish
from nodeagent.job.session.values import HangStage
from nodeagent.job.shell import record, state_folder
from nodeagent.job.step.folder import StepFolder
from nodeagent.job.step.values import NodeOutcome, RunPlan
from nodeagent.job.step.whole_job_hang import JobHangFinding
from tests.job.shell.daemon_double import opened
from tests.job.shell.supervised import Place, lives, pids_in
from tests.waiting import WAIT_LIMIT_S, wait_until

NODE = {"SLURMD_NODENAME": "n2", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "3"}
SAYS = """
import os
print(*(os.environ[name] for name in ("NODEAGENT_RUN", "NODEAGENT_WHY", "MA_PROC_START_CNT")))
"""


@pytest.fixture
def folder(place: Place) -> StepFolder:
    """With the plan of run 3, the second of its placement."""
    made = StepFolder(place.state)
    made.put_plan(
        RunPlan(
            run=3,
            execution=2,
            nodes=("n1", "n2"),
            whys={"n1": RunReason.FAILED, "n2": RunReason.PEER},
            waited_s={},
        )
    )
    return made


def options(place: Place, run: int = 3) -> tuple[str, ...]:
    return ("--in-step", str(run), "--state", str(place.state), "--verdict-wait", "0s")


def outcome(folder: StepFolder) -> NodeOutcome:
    found = folder.outcome(3, "n2")
    assert found is not None
    return found


def test_it_runs_as_the_plan_says_and_leaves_that_it_is_done(place: Place, folder: StepFolder) -> None:
    done = place.run(sys.executable, "-c", SAYS, options=options(place), env=NODE)

    assert (done.stdout, done.returncode) == (b"3 peer 2\n", 0), done.stderr
    assert outcome(folder) == NodeOutcome(node="n2", run=3, status=0, why="done")


def test_a_folder_that_is_still_in_use_is_nothing_that_the_user_has_given(
    place: Place, folder: StepFolder
) -> None:
    """The run before is not quite over here: the step tries again, where a bad option would end the job."""
    held = state_folder.open_alone(folder.of_node("n2"))
    try:
        done = place.run("true", options=options(place), env=NODE)
    finally:
        held.close()
    assert (done.returncode, b"uses it" in done.stderr, folder.outcome(3, "n2")) == (78, True, None)


def test_a_retry_is_left_to_the_step(place: Place, folder: StepFolder) -> None:
    done = place.run("false", options=(*options(place), "--in-place-retries", "2"), env=NODE)
    found = outcome(folder)

    assert done.returncode == 85
    assert (found.status, found.pause_s, found.fault, found.next_why) == (85, 1.0, False, RunReason.FAILED)
    assert found.counts.retries == 1


def test_counts_are_those_of_the_job_and_the_node_changes_none(place: Place, folder: StepFolder) -> None:
    kept = record.encode_counts(Counts(schedule=2, retries=2, signature="x"), job="7")
    folder.counts.write_text(kept)
    done = place.run("false", options=(*options(place), "--in-place-retries", "2"), env=NODE)

    assert done.returncode == 87
    assert outcome(folder).counts.schedule == 2
    assert folder.counts.read_text() == kept


def test_a_bad_policy_is_told_to_the_step(place: Place, folder: StepFolder) -> None:
    done = place.run("true", options=(*options(place), "--grace", "never"), env=NODE)

    assert done.returncode == 78
    assert (outcome(folder).status, "grace (--grace): a time" in outcome(folder).why) == (78, True)


@pytest.mark.parametrize(
    ("run", "node", "says"),
    [(4, "n2", "no plan of run 4"), (3, "n9", "is made on n1, n2, not on n9"), (3, "", "SLURMD_NODENAME")],
)
def test_one_that_is_no_part_of_the_run_runs_nothing(
    place: Place, folder: StepFolder, run: int, node: str, says: str
) -> None:
    assert folder.plan(3) is not None
    done = place.run("echo", "ran", options=options(place, run), env={**NODE, "SLURMD_NODENAME": node})

    assert (done.returncode, done.stdout) == (78, b"")
    assert says in done.stderr.decode()


def test_one_that_is_ended_has_nothing_to_say(place: Place, folder: StepFolder) -> None:
    began = place.folder / "began"
    command = ("sh", "-c", f"echo $$ > {began}; exec sleep 1000")
    with place.started(*command, options=(*options(place), "--in-place"), env=NODE) as supervisor:
        pids_in(began, 1)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(WAIT_LIMIT_S) == 143

    assert (outcome(folder).status, outcome(folder).signalled) == (143, True)


def test_one_without_a_policy_that_is_ended_has_nothing_to_say_either(
    place: Place, folder: StepFolder
) -> None:
    """Its command gets the signal itself, and ends with a status of its own."""
    began = place.folder / "began"
    command = ("sh", "-c", f"trap 'exit 4' TERM; echo $$ > {began}; while :; do sleep 0.05; done")
    with place.started(*command, options=options(place), env=NODE) as supervisor:
        pids_in(began, 1)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(WAIT_LIMIT_S) == 4

    assert (outcome(folder).status, outcome(folder).signalled) == (4, True)


def test_one_that_was_held_for_its_time_in_runs_before_leaves(place: Place, folder: StepFolder) -> None:
    whys = {"n2": RunReason.HEALED}
    folder.put_plan(RunPlan(run=3, execution=2, nodes=("n2",), whys=whys, waited_s={"n2": 600.0}))
    with opened(place.socket, grants=False):
        done = place.run("true", options=(*options(place), "--in-place"), env=NODE)

    assert (done.returncode, outcome(folder).fault) == (86, True)


def test_one_that_waits_for_its_chips_says_so_and_for_how_long(place: Place, folder: StepFolder) -> None:
    with (
        opened(place.socket, grants=False) as daemon,
        place.started("true", options=(*options(place), "--in-place"), env=NODE) as supervisor,
    ):
        assert daemon.received(JobBegin).run == 3
        daemon.want(Wish.HOLD, 3)
        journal = place.state / "node-n2" / "journal.jsonl"
        wait_until(lambda: '"hold"' in journal.read_text(), "that it is held")
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(WAIT_LIMIT_S) == 85

    found = outcome(folder)
    assert (found.status, found.fault, found.next_why) == (85, True, RunReason.HEALED)
    assert found.waited_s > 0


def test_what_a_killed_supervisor_left_on_the_node_is_ended_first(place: Place, folder: StepFolder) -> None:
    """The run before had another number, and its journal says nothing of this one."""
    began = place.folder / "began"
    folder.put_plan(RunPlan(run=2, execution=1, nodes=("n2",), whys={"n2": RunReason.FIRST}))
    command = ("sh", "-c", f"[ $NODEAGENT_RUN = 2 ] || exit 0; echo $$ > {began}; exec sleep 1000")
    with place.started(*command, options=(*options(place, 2), "--in-place"), env=NODE) as supervisor:
        (left,) = pids_in(began, 1)
        os.kill(supervisor.pid, signal.SIGKILL)
        supervisor.wait(WAIT_LIMIT_S)
        done = place.run(*command, options=(*options(place), "--in-place"), env=NODE)

    assert (done.returncode, lives(left)) == (0, False)
    assert outcome(folder) == NodeOutcome(node="n2", run=3, status=0, why="done")


def test_a_hang_that_the_step_has_found_on_all_nodes_is_acted_on_here(
    place: Place, folder: StepFolder
) -> None:
    began = place.folder / "began"
    command = ("sh", "-c", f"echo $$ > {began}; exec sleep 1000")
    policy = ("--hang", "restart", "--hang-time", "10s", "--period", "0.1", "--grace", "0s")
    with place.started(*command, options=(*options(place), *policy), env=NODE) as supervisor:
        pids_in(began, 1)
        wait_until(lambda: folder.hang_report(3, "n2"), "its report on the chips")
        folder.put_finding(
            3,
            JobHangFinding(
                number=1, what=HangStage.CONFIRMED, why="every chip is flat", since_s=10.0, acts=True
            ),
        )
        assert supervisor.wait(WAIT_LIMIT_S) == 85

    found = outcome(folder)
    assert (found.next_why, found.fault, found.counts.hangs) == (RunReason.SUSPENDED, False, 1)


def test_the_folder_of_a_step_is_one_for_each_node(place: Place, folder: StepFolder) -> None:
    place.run("true", options=options(place), env=NODE)

    assert {each.name for each in Path(folder.path).iterdir()} == {"node-n2", "run-3"}
