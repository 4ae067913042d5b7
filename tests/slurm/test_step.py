"""``job step`` on three real slurmd: all nodes run again in place, on those that are left."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.job.shell.supervised import build, lives
from tests.slurm.cluster import Cluster
from tests.slurm.stepping import NODES, Job, step, stepping

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("slurm-step")]

RETRIES = ("--in-place", "--in-place-retries", "2", "--grace", "2s", "--verdict-wait", "0s")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with stepping(tmp_path_factory.mktemp("step") / "slurm") as cluster:
        yield cluster


@pytest.fixture
def nodes(made: Cluster) -> Iterator[Cluster]:
    """All three are idle, before and after: no job is left, and one that a test has taken down comes back."""
    yield made
    made.run("scancel", "--user=root")
    for node in NODES:
        if set(made.state(node)) & {"DOWN", "DRAIN"}:
            made.run("scontrol", "update", f"nodename={node}", "state=resume")
    made.comes(lambda: all(made.state(node) == ["IDLE"] for node in NODES), "every node is idle again")


def lose(job: Job, node: str) -> None:
    job.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=a test")


def test_one_that_fails_has_all_nodes_run_again_in_place_and_nothing_is_requeued(
    nodes: Cluster, tmp_path: Path
) -> None:
    job = step(nodes, tmp_path, *RETRIES)
    job.runs_on(1, *NODES)
    job.order("n2 1 exit 3")
    second = job.runs_on(2, *NODES)
    job.finish(2)
    ended = job.ends("COMPLETED", "FAILED")

    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0")
    assert [(each.node, each.why, each.execution, each.placement) for each in second] == [
        ("n1", "peer", 2, 1),
        ("n2", "failed", 2, 1),
        ("n3", "peer", 2, 1),
    ]
    assert sorted((tmp_path / "ends").read_text().split("\n")[:-1]) == ["n1 1", "n3 1"]


def test_of_a_heterogeneous_job_the_nodes_of_the_first_part_run_it(nodes: Cluster, tmp_path: Path) -> None:
    parts = ("--nodelist=n1", ":", "--nodelist=n2")
    job = step(nodes, tmp_path, *RETRIES, nodes=1, allocation=parts)
    job.runs_on(1, "n1")
    job.order("n1 1 exit 3")
    job.runs_on(2, "n1")
    job.finish(2)
    assert job.ends("COMPLETED", "FAILED")["JobState"] == "COMPLETED"


STEPS = """
import os, sys, time
from nodeagent_job import beat
node, end = os.environ["SLURMD_NODENAME"], time.monotonic() + float(sys.argv[2])
step = 0
while time.monotonic() < end and not os.path.exists(sys.argv[1]):
    step += 1
    time.sleep(0.4)  # all ranks wait for the slowest
    beat(step=step, compute_s=0.4 if node == "n2" and step > 40 else 0.2)
"""


def test_a_rank_that_holds_up_those_of_other_nodes_is_named_by_the_step_and_by_its_supervisor(
    nodes: Cluster, tmp_path: Path
) -> None:
    program, done = tmp_path / "steps.py", tmp_path / "done"
    program.write_text(STEPS)
    job = step(nodes, tmp_path, "--period", "1", command=(sys.executable, program, done, "120"))
    job.comes(lambda: "run 1: rank 1 on n2 holds up its peers: it takes 0.4 s" in job.said, "the slow rank")
    job.comes(lambda: "run 1: rank 1 (pid " in job.said, "its supervisor's message")
    done.touch()

    assert job.ends("COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert "rank 0" not in job.said
    assert "rank 2" not in job.said


def test_a_peer_that_slurm_has_to_kill_runs_again_with_the_others(nodes: Cluster, tmp_path: Path) -> None:
    """Its grace is longer than KillWait, and it ignores the signal: Slurm kills its supervisor, too."""
    job = step(nodes, tmp_path, "--in-place-retries", "2", "--verdict-wait", "0s")
    job.order("n1 1 ignore-term")
    (killed, *_) = job.runs_on(1, *NODES)
    job.order("n1 1 ignore-term", "n2 1 exit 3")
    second = job.runs_on(2, *NODES)
    left = lives(killed.pid)
    job.finish(2)

    assert job.ends("COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert not (job.state / "run-1/node-n1.json").exists()
    assert (left, [each.why for each in second]) == (False, ["peer", "failed", "peer"])


def test_a_budget_that_is_spent_ends_the_job_on_all_nodes(nodes: Cluster, tmp_path: Path) -> None:
    """The supervisor is the one file here, as in an image."""
    pyz = build(tmp_path / "nodeagent-job.pyz")
    policy = ("--in-place-retries", "1", "--verdict-wait", "0s")
    job = step(nodes, tmp_path, *policy, program=(sys.executable, pyz))
    job.runs_on(1, *NODES)
    job.order("n3 1 exit 3", "n1 2 exit 4")
    ended = job.ends("COMPLETED", "FAILED")

    assert (ended["JobState"], ended["ExitCode"]) == ("FAILED", "87:0")
    assert {each.run for each in job.begun()} == {1, 2}


def test_without_a_policy_a_failure_is_the_jobs_and_nothing_runs_again(
    nodes: Cluster, tmp_path: Path
) -> None:
    job = step(nodes, tmp_path, program=(f"{sys.prefix}/bin/nodeagent", "job"))
    job.runs_on(1, *NODES)
    job.order("n2 1 exit 3")
    ended = job.ends("COMPLETED", "FAILED")

    assert (ended["ExitCode"], {each.run for each in job.begun()}) == ("3:0", {1})


def test_a_node_that_is_lost_is_gone_without_where_two_are_enough(nodes: Cluster, tmp_path: Path) -> None:
    job = step(nodes, tmp_path, *RETRIES, "--min-nodes", "2")
    job.runs_on(1, *NODES)
    lose(job, "n2")
    second = job.runs_on(2, "n1", "n3")
    job.finish(2)
    ended = job.ends("COMPLETED", "FAILED")

    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0")
    assert {(each.why, each.execution) for each in second} == {("peer", 2)}


def test_a_node_that_is_lost_ends_the_placement_where_three_are_needed(
    nodes: Cluster, tmp_path: Path
) -> None:
    """Then the job is queued again, waits for the node, and counts on."""
    job = step(nodes, tmp_path, *RETRIES, "--min-nodes", "3", "--placements", "8")
    job.runs_on(1, *NODES)
    lose(job, "n2")
    job.comes(lambda: "leaves with status 75" in job.said, "its end here")
    job.ends("PENDING", "REQUEUED")
    nodes.run("scontrol", "update", "nodename=n2", "state=resume")
    second = job.runs_on(2, *NODES)
    job.finish(2)

    assert job.ends("COMPLETED", "FAILED")["JobState"] == "COMPLETED"
    assert {(each.why, each.execution, each.placement) for each in second} == {("first", 1, 2)}


def test_the_status_of_srun_is_no_success(nodes: Cluster, tmp_path: Path) -> None:
    """It shows 0, as srun was seen to after the loss of a node, and one node has not said that it is done."""
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text('#!/bin/sh\n/usr/bin/srun "$@"\nexit 0\n')
    srun.chmod(0o755)
    job = step(nodes, tmp_path, *RETRIES, "--min-nodes", "2", path=f"{srun.parent}:")
    job.runs_on(1, *NODES)
    lose(job, "n3")
    job.runs_on(2, "n1", "n2")
    job.order("n1 2 exit 3")
    job.runs_on(3, "n1", "n2")
    job.finish(3)

    assert job.ends("COMPLETED", "FAILED")["JobState"] == "COMPLETED"


def test_a_controller_that_is_ended_and_comes_back_changes_nothing(nodes: Cluster, tmp_path: Path) -> None:
    """It refuses steps for some seconds then: these are attempts, too, and have a number."""
    job = step(nodes, tmp_path, *RETRIES)
    job.runs_on(1, *NODES)
    nodes.end("controller")
    job.order("n2 1 exit 3")
    job.comes((job.state / "run-1/node-n2.json").exists, "the outcome of n2")
    nodes.start_controller()
    job.comes(lambda: len(job.begun()) == 2 * len(NODES), "the next run on all nodes")
    job.finish(job.begun()[-1].run)

    assert job.ends("COMPLETED", "FAILED")["JobState"] == "COMPLETED"


# ---------------------------------------------------------------------- the job is cancelled


@pytest.mark.parametrize("policy", [(), ("--in-place", "--in-place-retries", "2")], ids=["watched", "ours"])
@pytest.mark.parametrize("who", [(), ("--batch", "--signal=TERM")], ids=["the job", "its script"])
def test_a_job_that_is_ended_has_its_grace_on_every_node(
    nodes: Cluster, tmp_path: Path, who: tuple[str, ...], policy: tuple[str, ...]
) -> None:
    """Slurm tells the steps and the script, or the script alone: each command is told once either way."""
    job = step(nodes, tmp_path, *policy)
    job.runs_on(1, *NODES)
    job.order(*(f"{node} 1 end-slowly" for node in NODES))
    nodes.run("scancel", *who, str(job.number))
    job.ends("CANCELLED", "FAILED")
    job.comes(lambda: job.living == [], "that nothing is left")

    assert sorted((tmp_path / "ends").read_text().splitlines()) == [f"{node} 1" for node in NODES]
    assert {each.run for each in job.begun()} == {1}


@pytest.mark.parametrize("stage", ["running", "stopping", "pausing"])
def test_a_job_that_is_cancelled_is_not_run_again_and_leaves_nothing(
    nodes: Cluster, tmp_path: Path, stage: str
) -> None:
    job = step(nodes, tmp_path, *RETRIES)
    job.runs_on(1, *NODES)
    if stage != "running":
        job.order("n2 1 exit 3", *(["n1 1 ignore-term"] if stage == "stopping" else []))
        job.comes((job.state / "run-1/node-n2.json").exists, "the outcome of n2")
    if stage == "pausing":
        job.comes(lambda: "run 1 has ended" in job.said, "the pause")
    assert job.living != []
    nodes.run("scancel", str(job.number))

    assert job.ends("CANCELLED")["Restarts"] == "0"
    job.comes(lambda: job.living == [], "that nothing is left")
    assert {each.run for each in job.begun()} == {1}
    assert [nodes.reason(node) for node in NODES] == ["", "", ""]
