"""The commands about jobs, against a real daemon and a supervisor that only talks."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli.shared import connection
from nodeagent.cli.shared.connection import Unreachable
from nodeagent.cli.shared.errors import EXIT_NOT_ALLOWED
from nodeagent.job import lines
from nodeagent.job.model import RunEvent, RunReport, RunRequest, Wish
from tests.cli.conftest import Nodeagent
from tests.cli.order.supervising import Supervising, supervising
from tests.harness.node import Node

JOB = f"pid:{os.getpid()}"
GPU = "0000:3b:00.0"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node.within(tmp_path)
    with node.daemon():
        yield node


@pytest.fixture
def supervisor(node: Node, tmp_path: Path) -> Iterator[Supervising]:
    with supervising(tmp_path / "jobs.sock") as supervisor:
        yield supervisor


@pytest.mark.usefixtures("supervisor")
def test_jobs_are_listed_with_their_stage_and_what_a_scheduler_does_best(nodeagent: Nodeagent) -> None:
    assert nodeagent("job", "list").out.splitlines() == [
        f"{'JOB':<{len(JOB)}}  STAGE    RUN  RECOMMENDED  DEVICES",
        f"{JOB}  running  1    NONE         no device",
    ]
    (job,) = nodeagent("job", "list", "-o", "json").json
    assert (job["name"], job["stage"], job["wanted"], job["run"]) == (JOB, "running", "run", 1)
    assert job["policy"] == {"in_place": True, "yields": False, "reschedules": False, "strategy": ""}
    assert (job["pid"], job["status"], job["due_at"]) == (os.getpid(), None, None)


def test_a_job_that_only_claims_is_listed_as_such(tmp_path: Path, nodeagent: Nodeagent) -> None:
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        nodeagent("claim", GPU, "--job", "slurm:7", "--kind", "training")
        listed = nodeagent("job", "list").out.splitlines()
        in_status = nodeagent("status").out
    assert listed[1].split() == ["slurm:7", "claimed", "-", "RESCHEDULE_ISOLATED", GPU]
    assert re.search(rf"^{GPU} .* slurm:7 +XID_79 ", in_status, re.MULTILINE)
    assert "supervised" not in in_status


def test_an_operator_stops_a_job_and_has_it_run_again(supervisor: Supervising, nodeagent: Nodeagent) -> None:
    stopped = nodeagent("job", "stop", JOB, "--reason", "a cable")
    assert supervisor.hear(RunRequest, wish=Wish.STOP).by_operator
    supervisor.say(RunReport(number=1, run=1, what=RunEvent.STOPPED))
    supervisor.hear(RunRequest, wish=Wish.HOLD)
    held = nodeagent("status").out
    again = nodeagent("job", "rerun", JOB, "--reason", "it is back", "-o", "json").json[0]
    want = supervisor.hear(RunRequest, wish=Wish.RUN)

    assert stopped.out.startswith(f"{JOB} is asked to stop\njob {JOB}: asked, run 1, on no device, until 20")
    assert f"job {JOB}: holding, run 2, on no device: " in held
    assert (again["name"], again["stage"], again["run"], again["durable"]) == (JOB, "running", 2, True)
    assert want.run == 2


@pytest.mark.usefixtures("supervisor")
def test_orders_for_jobs_are_audited_and_need_a_job_that_is_there(nodeagent: Nodeagent) -> None:
    unknown = nodeagent("job", "stop", "slurm:1.0", "--reason", "test")
    nodeagent("job", "stop", JOB, "--reason", "a cable")
    entries = nodeagent("audit", "-o", "json").json
    assert unknown.status == 1
    assert JOB in unknown.err
    assert [(each["what"], each["target"], each["result"]) for each in entries] == [
        ("StopJob", "slurm:1.0", f"refused: {unknown.err.removeprefix('nodeagent: ').strip()}"),
        ("StopJob", JOB, "asked to stop: a cable"),
    ]


def test_one_job_is_shown_with_what_happened_to_it(supervisor: Supervising, nodeagent: Nodeagent) -> None:
    supervisor.say(RunReport(number=1, run=1, what=RunEvent.SUSPECTED, why="no step for 12 min"))
    supervisor.hear(lines.ReportTaken)
    supervisor.say(lines.Bye(number=2, status=87, why="the same failure twice"))
    supervisor.hear(lines.ReportTaken)
    shown = nodeagent("job", "show", JOB).out.splitlines()
    form = nodeagent("job", "show", JOB, "-o", "json").json[0]

    assert shown[0] == f"job {JOB}"
    assert [line.strip() for line in shown[2:7]] == [
        "uses: no device",
        "why: the same failure twice",
        "may: be stopped and run again here",
        "recommended: GIVE_UP",
        "left with: status 87",
    ]
    assert [line.split(" ", 3)[3] for line in shown[-3:]] == [
        "job_begun: run 1: its supervisor has begun",
        "job_suspected: run 1: no step for 12 min",
        "job_ended: run 1: the same failure twice",
    ]
    assert [event["job"]["stage"] for event in form["events"]] == ["running", "running", "ended"]
    assert nodeagent("job", "list").out.splitlines()[1:] == []
    assert JOB in nodeagent("job", "list", "--all").out


def test_a_slow_rank_is_listed_and_shown(supervisor: Supervising, nodeagent: Nodeagent) -> None:
    why = "rank 2 holds up its peers: it takes 1.2 s by itself for a step, they 0.6 s"
    supervisor.say(RunReport(number=1, run=1, what=RunEvent.SLOW, why=why, evidence={"who": "rank 2"}))
    supervisor.hear(lines.ReportTaken)
    shown = nodeagent("job", "show", JOB).out.splitlines()

    assert f"{JOB}: rank 2 holds up the others; see nodeagent job show {JOB}" in nodeagent("job", "list").out
    assert "slow: rank 2" in [line.strip() for line in shown]
    assert shown[-1].endswith(f"job_slow: run 1: {why}")
    assert nodeagent("job", "list", "-o", "json").json[0]["slow"] == ["rank 2"]


@pytest.mark.usefixtures("supervisor")
def test_a_job_that_is_not_there_is_refused_with_those_that_are(nodeagent: Nodeagent) -> None:
    shown = nodeagent("job", "show", "slurm:1.0")
    assert shown.status == 1
    assert f"there is no job slurm:1.0; there are {JOB}" in shown.err


@pytest.mark.usefixtures("supervisor")
def test_the_whole_state_names_jobs(nodeagent: Nodeagent) -> None:
    assert [job["name"] for job in nodeagent("status", "-o", "json").json[0]["jobs"]] == [JOB]
    assert "\n1 supervised job runs\n" in nodeagent("status").out
    assert f"job {JOB}: running, run 1, on no device" in nodeagent("status", "--all").out


@pytest.mark.usefixtures("supervisor")
def test_a_user_outside_the_group_of_readers_lists_and_shows_the_user_s_own_jobs(
    nodeagent: Nodeagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, _timeout_s: float) -> None:
        raise Unreachable(f"permission denied on {path}", EXIT_NOT_ALLOWED)

    monkeypatch.setattr(connection, "opened", refused)
    listed, shown = nodeagent("job", "list"), nodeagent("job", "show", JOB)
    assert listed.out.splitlines()[1].split()[:3] == [JOB, "running", "1"]
    assert "these are the jobs that processes of yours supervise" in listed.err
    assert shown.out.splitlines()[-1].endswith("run 1: its supervisor has begun")
