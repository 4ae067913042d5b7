"""STATE of a step: the folder that all its nodes see, and the files in it.

    lock                  locked while the loop lives
    run_state.json        the counts of the job, over runs and placements
    run-N/plan.json       which nodes make run N, and why
    run-N/node-NODE.json  how run N has ended on that node
    run-N/hangs/          what each node sees of a hang, and what the loop finds
    run-N/slow/           the step times of each node's ranks, and which ranks the loop finds slow
    node-NODE/            the STATE of that node's own supervisor

Files are written whole, under another name first. Another node's file is looked for by its name, and only
where it may be there: a network file system remembers for a while that there was no such name (nfs(5),
lookupcache).
"""

import re
from pathlib import Path
from typing import Final, TypeVar

from nodeagent.job import codec
from nodeagent.job.codec import CodecError
from nodeagent.job.shell import files
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.step.values import NodeOutcome, RunPlan
from nodeagent.job.step.whole_job_hang import JobHangFinding, NodeHangReport
from nodeagent.job.step.whole_job_slow import JobSlowFinding, NodeStepTimes

Record = NodeOutcome | RunPlan | NodeHangReport | JobHangFinding | NodeStepTimes | JobSlowFinding
T = TypeVar("T", NodeOutcome, RunPlan, NodeHangReport, JobHangFinding, NodeStepTimes, JobSlowFinding)

MAX_BYTES: Final = 1 << 20

_RUN: Final = re.compile(r"run-(\d+)")
_FORMATS: Final[dict[type, str]] = {
    NodeOutcome: "nodeagent-job-outcome",
    RunPlan: "nodeagent-job-plan",
    NodeHangReport: "nodeagent-job-node-word",
    JobHangFinding: "nodeagent-job-finding",
    NodeStepTimes: "nodeagent-job-step-times",
    JobSlowFinding: "nodeagent-job-slow",
}


def encode(record: Record) -> str:
    return codec.encode_document(record, _FORMATS[type(record)])


def decode(of: type[T], text: str) -> T:
    """Raises ``codec.CodecError``."""
    return codec.document_value(of, codec.document_values(text, _FORMATS[of]))


class StepFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def counts(self) -> Path:
        return self.path / "run_state.json"

    def of_node(self, node: str) -> Path:
        return self.path / f"node-{node}"

    def next_run(self) -> int:
        """A number that no run has yet, also of placements before. Raises ``OSError``."""
        found = (_RUN.fullmatch(each.name) for each in self.path.iterdir())
        return 1 + max((int(each[1]) for each in found if each is not None), default=0)

    # ------------------------------------------------------------------ written; each raises ``OSError``

    def put_plan(self, plan: RunPlan) -> None:
        for name in ("hangs", "slow"):
            (self._run(plan.run) / name).mkdir(parents=True, exist_ok=True)
        files.write(self._run(plan.run) / "plan.json", encode(plan))

    def put_outcome(self, outcome: NodeOutcome) -> None:
        files.write(self._run(outcome.run) / _of(outcome.node), encode(outcome))

    def put_hang_report(self, run: int, node: str, report: NodeHangReport) -> None:
        files.write(self._run(run) / "hangs" / _of(node), encode(report), is_lasting=False)

    def put_finding(self, run: int, finding: JobHangFinding) -> None:
        files.write(self._run(run) / "hangs" / "found-by-step.json", encode(finding), is_lasting=False)

    def put_step_times(self, run: int, node: str, times: NodeStepTimes) -> None:
        files.write(self._run(run) / "slow" / _of(node), encode(times), is_lasting=False)

    def put_slow(self, run: int, finding: JobSlowFinding) -> None:
        files.write(self._run(run) / "slow" / "found-by-step.json", encode(finding), is_lasting=False)

    # ------------------------------------------------------------------ read; None where there is none

    def plan(self, run: int) -> RunPlan | None:
        return _read(RunPlan, self._run(run) / "plan.json")

    def outcome(self, run: int, node: str) -> NodeOutcome | None:
        file = self._run(run) / _of(node)
        found = _read(NodeOutcome, file)
        if found is not None and (found.run, found.node) != (run, node):
            print_message(f"{file} is of run {found.run} on {found.node}; it counts for nothing")
            return None
        return found

    def hang_report(self, run: int, node: str) -> NodeHangReport | None:
        return _read(NodeHangReport, self._run(run) / "hangs" / _of(node))

    def finding(self, run: int) -> JobHangFinding | None:
        return _read(JobHangFinding, self._run(run) / "hangs" / "found-by-step.json")

    def step_times(self, run: int, node: str) -> NodeStepTimes | None:
        return _read(NodeStepTimes, self._run(run) / "slow" / _of(node))

    def slow(self, run: int) -> JobSlowFinding | None:
        return _read(JobSlowFinding, self._run(run) / "slow" / "found-by-step.json")

    def _run(self, number: int) -> Path:
        return self.path / f"run-{number}"


def _of(node: str) -> str:
    """No node's file has the name of another file, whatever the node is called."""
    return f"node-{node}.json"


def _read(of: type[T], file: Path) -> T | None:
    try:
        return decode(of, files.read(file, MAX_BYTES).decode())
    except FileNotFoundError:
        return None
    except OSError as error:
        print_message(f"{file}: {error.strerror}; it counts as if it were not there")
    except (CodecError, UnicodeDecodeError) as error:
        print_message(f"{file}: {error}; it counts as if it were not there")
    return None
