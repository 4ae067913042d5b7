"""What the nodes of a step and its loop send each other, as texts: ends of runs, plans, words on a hang."""

from typing import Final, TypeVar

from nodeagent.job import kept
from nodeagent.job.step.model import Outcome, Plan
from nodeagent.job.step.together import Finding, NodeWord

Record = Outcome | Plan | NodeWord | Finding
T = TypeVar("T", Outcome, Plan, NodeWord, Finding)

_FORMATS: Final[dict[type, str]] = {
    Outcome: "nodeagent-job-outcome",
    Plan: "nodeagent-job-plan",
    NodeWord: "nodeagent-job-node-word",
    Finding: "nodeagent-job-finding",
}


def encode(record: Record) -> str:
    return kept.encode(record, _FORMATS[type(record)])


def decode(of: type[T], text: str) -> T:
    """Raises ``kept.KeptError``."""
    return kept.value_of(of, kept.values_of(text, _FORMATS[of]))
