"""How large the tables may be: so that the daemon and its workers stay within the unit's memory (MemoryMax in
packaging/nodeagent.service), though several catalogs are in memory at a time and one more is being read.

It looks at sizes and numbers only.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeagent.core.catalog.catalog import Pattern
from nodeagent.tables.entry import Entry
from nodeagent.tables.layers import Merged
from nodeagent.toml.problem import Problem

MAX_BYTES: Final = 3 * 1024 * 1024
"""The size of all files. What is read of a byte takes up to a hundred bytes of memory until it is judged."""

MAX_CODES: Final = 10_000
MAX_RULES: Final = 2_000
MAX_PATTERNS: Final = 500
"""All of them are compiled at each start of the worker that reads the kernel log, and kept in its memory."""

MAX_PATTERNS_BYTES: Final = 1024 * 1024
"""As they are sent to a worker: in one line (``wire.MAX_LINE_BYTES``)."""


def too_many_bytes(files: Iterable[Path]) -> Iterator[Problem]:
    """Problems of the size of files, before they are read."""
    sizes = dict[Path, int]()
    for path in files:
        # What has gone, or cannot be looked at, is reported when it is read.
        with contextlib.suppress(OSError):
            sizes[path] = path.stat().st_size
    if (total := sum(sizes.values())) > MAX_BYTES:
        largest = max(sizes, key=lambda path: sizes[path])
        reason = (
            f"the tables have {total} bytes together, {sizes[largest]} of them here; at most {MAX_BYTES} are"
            " read"
        )
        yield Problem(file=str(largest), line=None, key="", reason=reason)


def too_many(merged: Merged) -> Iterator[Problem]:
    """Problems of all files together; each names the file that has most of it."""
    patterns = [rule for rule in merged.rules if isinstance(rule.value, Pattern)]
    rules = [rule for rule in merged.rules if not isinstance(rule.value, Pattern)]
    for entries, most, what in (
        (list(merged.rows.values()), MAX_CODES, "codes"),
        (rules, MAX_RULES, "rules"),
        (patterns, MAX_PATTERNS, "patterns"),
    ):
        if len(entries) > most:
            file, count = _most_of(entries)
            reason = f"the tables have {len(entries)} {what} together, {count} of them here"
            yield Problem(file=file, line=None, key="", reason=f"{reason}; at most {most} are taken")
    if (size := sum(len(msgspec.json.encode(rule.value)) for rule in patterns)) > MAX_PATTERNS_BYTES:
        reason = f"the tables have {size} bytes of patterns together, most of them here"
        yield Problem(
            file=_most_of(patterns)[0],
            line=None,
            key="",
            reason=f"{reason}; at most {MAX_PATTERNS_BYTES} are taken",
        )


def _most_of(entries: Iterable[Entry[Any]]) -> tuple[str, int]:
    """The file that has most of them, and how many."""
    return Counter(entry.source.file for entry in entries).most_common(1)[0]
