"""``job step`` as a real process, where Slurm's three programs are stand-ins: what they answer is the test's.

With a real Slurm it is tried in tests/slurm. Here is what a real one does not do when it is asked to.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodeagent.job.model import SECOND_NS, Counts
from nodeagent.job.shell import record
from nodeagent.job.shell.loop import ReceivedSignals, now_ns
from nodeagent.job.step.process import _is_ended
from tests.job.shell.supervised import ROOT
from tests.waiting import WAIT_LIMIT_S, wait_until

SQUEUE = """#!/bin/sh
cat "$HERE/squeue" 2>/dev/null && exit
echo "slurm_load_jobs error: Unable to contact slurm controller" >&2
exit 1
"""
SCONTROL = "#!/bin/sh\necho n1; echo n2\n"
SRUN = f"#!/bin/sh\nexec {sys.executable} $HERE/srun.py\n"
SAYS = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from nodeagent.job.model import Counts, RunReason
from nodeagent.job.step.folder import StepFolder
from nodeagent.job.step.values import NodeOutcome
from nodeagent.job.step.whole_job_hang import NodeHangReport

folder = StepFolder(Path(os.environ["HERE"]) / "state")
run = folder.next_run() - 1
def say(node, status, **more):
    folder.put_outcome(NodeOutcome(node=node, run=run, status=status, **more))
"""
ALL_DONE = 'say("n1", 0); say("n2", 0)'
HANGS = """
if run == 1:
    for node in ("n1", "n2"):
        high = NodeHangReport(
            number=1, period_s=0.1, hang_time_s=10.0, flat_s=10.0, idle_high_s=10.0, acts=True
        )
        folder.put_hang_report(run, node, high)
    while folder.finding(run) is None:
        time.sleep(0.01)
    say("n1", 85, next_why=RunReason.SUSPENDED, counts=Counts(hangs=1))
    say("n2", 143, signalled=True)
    sys.exit(137)
say("n1", 0); say("n2", 0)
"""


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL), ("srun", SRUN)):
            file = folder / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
        self.answer("7|RUNNING|n[1-2]")
        self.srun(ALL_DONE)

    def answer(self, line: str) -> None:
        """Of squeue."""
        (self.folder / "squeue").write_text(f"{line}\n")

    def srun(self, does: str) -> None:
        (self.folder / "srun.py").write_text(SAYS.format(root=str(ROOT)) + does)

    def words(self, *options: str) -> list[str | Path]:
        state = ("--state", self.folder / "state", "--period", "0.1")
        return [sys.executable, "-m", "nodeagent.job", "step", *state, *options, "--", "true"]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HERE": str(self.folder),
            "SLURM_JOB_ID": "7",
        }

    def run(self, *options: str, **env: str) -> tuple[int, str]:
        """(exit status, standard error)"""
        done = subprocess.run(
            self.words(*options),
            env={**self.environment, **env},
            capture_output=True,
            text=True,
            timeout=WAIT_LIMIT_S,
            check=False,
        )
        return done.returncode, done.stderr

    def plan(self, run: int) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / f"state/run-{run}/plan.json").read_text())
        return found


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_done_on_all_nodes_is_done(stage: Stage) -> None:
    assert stage.run()[0] == 0
    assert stage.plan(1)["nodes"] == ["n1", "n2"]


def test_srun_that_ends_with_0_and_a_node_that_says_nothing_is_no_success(stage: Stage) -> None:
    stage.srun('say("n1", 0)')
    status, said = stage.run()
    assert (status, "leaves with status 1: srun ended with status 0" in said) == (1, True), said


def test_a_hang_of_all_nodes_is_told_to_them_and_they_run_again(stage: Stage) -> None:
    stage.srun(HANGS)
    status, said = stage.run("--hang", "restart")
    assert status == 0
    assert "confirmed: every chip on 2 nodes is without any sign of work" in said
    assert stage.plan(2)["whys"] == {"n1": "suspended", "n2": "peer"}
    counts = record.decode_counts((stage.folder / "state/run_state.json").read_text(), job="7")
    assert counts == Counts(hangs=1)


def test_a_controller_that_does_not_answer_is_asked_until_it_does(stage: Stage) -> None:
    (stage.folder / "squeue").unlink()
    with subprocess.Popen(stage.words(), env=stage.environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        stage.answer("7|RUNNING|n[1-2]")
        assert process.wait(WAIT_LIMIT_S) == 0
    assert "Unable to contact slurm controller; it is asked again until it answers" in line


def test_a_signal_ends_it_while_nobody_answers(stage: Stage) -> None:
    (stage.folder / "squeue").unlink()
    with subprocess.Popen(stage.words(), env=stage.environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_LIMIT_S) == 143
    assert not (stage.folder / "state/run-1").exists()


def test_a_signal_ends_the_step_and_it_is_not_made_again(stage: Stage) -> None:
    stage.srun('(folder.path / "began").touch(); time.sleep(1000)')
    with subprocess.Popen(stage.words("--in-place-retries", "2"), env=stage.environment) as process:
        wait_until((stage.folder / "state/began").exists, "the step")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_LIMIT_S) == 143
    assert not (stage.folder / "state/run-2").exists()


def test_two_loops_never_share_a_folder(stage: Stage) -> None:
    stage.srun('(folder.path / "began").touch(); time.sleep(1000)')
    with subprocess.Popen(stage.words(), env=stage.environment, stderr=subprocess.DEVNULL) as first:
        wait_until((stage.folder / "state/began").exists, "the step")
        status, said = stage.run()
        first.send_signal(signal.SIGTERM)
        first.wait(WAIT_LIMIT_S)
    assert status == 78
    assert f"supervisor {first.pid} on" in said


def test_a_signal_that_warns_goes_on_to_the_step_and_the_others_would_end_it(stage: Stage) -> None:
    stage.srun("""
import signal
signal.signal(signal.SIGUSR1, lambda *_: (say("n1", 0), say("n2", 0), os._exit(0)))
(folder.path / "began").touch(); time.sleep(1000)
""")
    with subprocess.Popen(stage.words(), env=stage.environment) as process:
        wait_until((stage.folder / "state/began").exists, "the step")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(WAIT_LIMIT_S) == 0


def test_a_controller_that_is_down_is_not_asked_again_at_once(stage: Stage) -> None:
    """The end of a child is no reason: squeue is one."""
    signals = ReceivedSignals()
    subprocess.run(["true"], check=True)
    before_ns = now_ns()
    assert not _is_ended(signals, 0.1)
    assert now_ns() - before_ns >= SECOND_NS // 10


@pytest.mark.parametrize(
    ("options", "env", "says"),
    [
        ((), {"SLURM_JOB_ID": ""}, "call it in the batch script of a Slurm job"),
        ((), {"PATH": "/nonexistent"}, "srun, squeue, scontrol: not found"),
        (("--nodes", "3"), {}, "--nodes: at most the 2 nodes of the job, not 3"),
        (("--min-nodes", "3"), {}, "--min-nodes: at most the 2 nodes of the job, not 3"),
        (("--grace", "never"), {}, "grace (--grace): a time"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(
    stage: Stage, options: tuple[str, ...], env: dict[str, str], says: str
) -> None:
    status, said = stage.run(*options, **env)
    assert (status, says in said) == (78, True), said
    assert not (stage.folder / "state/run-1").exists()
