"""``run_state.json``: the counts of a job that outlive its placement, on storage that all its nodes see.

A file that is torn, or is somebody else's, is an error, and never read as "nothing was counted". Whoever
reads the file moves it aside then and says so. It reads and writes no file.
"""

from dataclasses import fields
from typing import Final

from nodeagent.job import json_file
from nodeagent.job.json_file import JsonFileError
from nodeagent.job.model import Counts

MAX_BYTES: Final = 1 << 16
"""It holds a few numbers and the name of the job."""

_FORMAT: Final = "nodeagent-job-run-state"
_MAY_BE_NONE: Final = frozenset({"best"})


def encode(counts: Counts, *, job: str) -> str:
    return json_file.encode(counts, _FORMAT, job=job)


def decode(text: str, *, job: str) -> Counts:
    """Raises ``JsonFileError``."""
    values = json_file.values_of(text, _FORMAT)
    if values.get("job") != job:
        raise JsonFileError(f"job: {job!r}, not {values.get('job')!r}; give each job a --state of its own")
    counts = json_file.value_of(Counts, values)
    _check_not_negative(counts)
    return counts


def _check_not_negative(counts: Counts) -> None:
    for each in fields(counts):
        value = getattr(counts, each.name)
        if isinstance(value, int) and value < 0 and each.name not in _MAY_BE_NONE:
            raise JsonFileError(f"{each.name}: a number from 0, not {value}")
