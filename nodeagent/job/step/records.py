"""What the nodes of a step and its loop send each other, as texts: ends of runs, plans, words on a hang."""

from typing import Final, TypeVar

from nodeagent.job import json_file
from nodeagent.job.step.model import Outcome, Plan
from nodeagent.job.step.whole_job_hang import Finding, NodeWord

Record = Outcome | Plan | NodeWord | Finding
T = TypeVar("T", Outcome, Plan, NodeWord, Finding)

_FORMATS: Final[dict[type, str]] = {
    Outcome: "nodeagent-job-outcome",
    Plan: "nodeagent-job-plan",
    NodeWord: "nodeagent-job-node-word",
    Finding: "nodeagent-job-finding",
}


def encode(record: Record) -> str:
    return json_file.encode(record, _FORMATS[type(record)])


def decode(of: type[T], text: str) -> T:
    """Raises ``json_file.KeptError``."""
    return json_file.value_of(of, json_file.values_of(text, _FORMATS[of]))
