"""Which patterns a kernel line cannot match, by Hyperscan: they need not be tried.

It may say "perhaps" too often, never too seldom: wherever its dialect could differ from Python's, the pattern
or the line is not filtered.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

try:
    import hyperscan

    from nodeagent.drivers.kmsg.compiled import compile_anew, compiled
except ImportError:
    hyperscan = None  # type: ignore[assignment]

PLAIN: Final = re.compile(r"[\t\n -~]*")
"""Text on which both engines agree what a space, a word and a digit are."""

_DIALECTS_DIFFER: Final = re.compile(r"[^\x00-\x7f]|\\[AZux0-9]|\{,|\[[:.=]|\(\?\w*[aLux]")
r"""Hints in a pattern that Python may read it otherwise: anchors of the whole text (lines are scanned
joined), octal and ``\x``, ``{,n}``, POSIX classes, and the inline flags a, L, u, x."""


def is_installed() -> bool:
    """Whether there is a Hyperscan to filter with."""
    return hyperscan is not None


class Prefilter:
    """Hyperscan over the patterns it can take. ``unfiltered`` are the others: tried on every line."""

    def __init__(self, patterns: Sequence[str]) -> None:
        taken = [n for n, pattern in enumerate(patterns) if not _DIALECTS_DIFFER.search(pattern)]
        self._database: Any = None
        while taken and self._database is None:
            taken = self._compile(patterns, taken)
        self.unfiltered = [n for n in range(len(patterns)) if n not in set(taken)]

    def _compile(self, patterns: Sequence[str], numbers: list[int]) -> list[int]:
        """Sets the database, or returns the numbers that compile one by one."""
        try:
            self._database = compiled({number: patterns[number] for number in numbers})
        except hyperscan.error:
            return [n for n in numbers if _compiles(patterns[n])]
        return numbers

    def any(self, messages: Sequence[str]) -> bool:
        """Whether any pattern may match any of the lines: one scan over all of them."""
        text = "\n".join(messages)
        if self._database is None or not PLAIN.fullmatch(text):
            return True
        hits: list[int] = []
        self._database.scan(text.encode(), match_event_handler=_collect, context=hits)
        return bool(hits)

    def candidates(self, message: str) -> list[int]:
        """The numbers of the patterns worth trying on the line, ascending."""
        hits = list(self.unfiltered)
        if self._database is not None:
            self._database.scan(message.encode(), match_event_handler=_collect, context=hits)
            hits.sort()
        return hits


def _compiles(pattern: str) -> bool:
    try:
        compile_anew({0: pattern})
    except hyperscan.error:
        return False
    return True


def _collect(number: int, _start: int, _end: int, _flags: int, hits: list[int]) -> None:
    hits.append(number)
