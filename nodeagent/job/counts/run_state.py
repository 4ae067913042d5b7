"""``run_state.json``: the counts of a job that outlive its placement, on storage that all its nodes see.

A file that is torn, or is somebody else's, is an error, and never read as "nothing was counted". Whoever
reads the file moves it aside then and tells so. It reads and writes no file.
"""

import json
from dataclasses import fields
from typing import Final

from nodeagent.job.model import Counts
from nodeagent.job.plain import PlainError, from_plain, to_plain

VERSION: Final = 1
_FORMAT: Final = "nodeagent-job-run-state"
_MAY_BE_NONE: Final = frozenset({"best"})


class RunStateError(ValueError):
    """The file does not hold the counts of a job. The text says why, and is told to people."""


def encode(counts: Counts, *, job: str) -> str:
    values = {"format": _FORMAT, "version": VERSION, "job": job, **to_plain(counts)}
    return json.dumps(values, indent=1) + "\n"


def decode(text: str, *, job: str) -> Counts:
    """Raises ``RunStateError``."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunStateError(f"not JSON, it may be torn: {error}") from error
    if not isinstance(values, dict) or values.get("format") != _FORMAT:
        raise RunStateError(f'format: "{_FORMAT}"; this file is of something else')
    if values.get("version") != VERSION:
        raise RunStateError(
            f"version: {VERSION}, not {values.get('version')!r}; use the same nodeagent on all nodes"
        )
    if values.get("job") != job:
        raise RunStateError(f"job: {job!r}, not {values.get('job')!r}; give each job a --state of its own")
    missing = [each.name for each in fields(Counts) if each.name not in values]
    if missing:
        raise RunStateError(f"{', '.join(missing)}: missing, it may be torn")
    try:
        counts = from_plain(Counts, values)
    except PlainError as error:
        raise RunStateError(str(error)) from error
    _check_not_negative(counts)
    return counts


def _check_not_negative(counts: Counts) -> None:
    for each in fields(counts):
        value = getattr(counts, each.name)
        if isinstance(value, int) and value < 0 and each.name not in _MAY_BE_NONE:
            raise RunStateError(f"{each.name}: a number from 0, not {value}")
