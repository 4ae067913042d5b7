"""What the nodes of a step and its loop tell each other, as JSON files: outcomes, plans, words on a hang.

A file that is no such thing is an error, and never read as if it said less. It reads and writes no file.
"""

import json
from dataclasses import fields
from typing import Final, TypeVar

from nodeagent.job.plain import PlainError, from_plain, to_plain
from nodeagent.job.step.model import Outcome, Plan
from nodeagent.job.step.together import Finding, NodeWord

VERSION: Final = 1

Record = Outcome | Plan | NodeWord | Finding
T = TypeVar("T", Outcome, Plan, NodeWord, Finding)

_FORMATS: Final[dict[type, str]] = {
    Outcome: "nodeagent-job-outcome",
    Plan: "nodeagent-job-plan",
    NodeWord: "nodeagent-job-node-word",
    Finding: "nodeagent-job-finding",
}


class RecordError(ValueError):
    """A file does not hold what its name says. The text says why."""


def encode(record: Record) -> str:
    """With its newline."""
    head = {"format": _FORMATS[type(record)], "version": VERSION}
    return json.dumps({**head, **to_plain(record)}, indent=1) + "\n"


def decode(of: type[T], text: str) -> T:
    """Raises ``RecordError``."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON, it may be torn: {error}") from error
    if not isinstance(values, dict) or values.get("format") != _FORMATS[of]:
        raise RecordError(f'format: "{_FORMATS[of]}"; this file is of something else')
    if values.get("version") != VERSION:
        raise RecordError(
            f"version: {VERSION}, not {values.get('version')!r}; use the same nodeagent on all nodes"
        )
    missing = [each.name for each in fields(of) if each.name not in values]
    if missing:
        raise RecordError(f"{', '.join(missing)}: missing, it may be torn")
    try:
        return from_plain(of, values, name=_FORMATS[of])
    except PlainError as error:
        raise RecordError(str(error)) from error
