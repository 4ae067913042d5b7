"""Which pattern a kernel line matches, and what that makes of it: code, device, named groups.

The first pattern in the tables' order counts that matches where the message begins, and only there: further
on the kernel quotes text that any user chooses. A message may hold several lines; one that begins as a
pattern does, after the first, is not matched.

All patterns are tried at once, and the groups of the one that counts are taken then.
"""

import re
import string
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.kmsg.quoting import begins_with_a_long_name
from nodeagent.expressions import Expression, ExpressionError, ExpressionSet
from nodeagent.system.memory import give_back
from nodeagent.wire import Pattern

_UNPRINTABLE: Final = re.compile(r"[^!-~]+")
_PCI: Final = re.compile(
    r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE | re.ASCII
)
_MAX_NAME: Final = 128

COUNT: Final = "count"
"""The group of a pattern that holds how many errors a line reports."""
REST: Final = "rest"
"""The group of a pattern in which its ``find`` is searched."""

_MAX_COUNT: Final = 10**9
"""Of one line: the sum over all lines of a boot still fits into a signal (``nodeagent.wire``)."""


@dataclass(frozen=True, slots=True)
class Match:
    """``pattern`` is its id; ``groups`` are the named groups that took part, as long as they were.

    ``count``: how many errors the line reports, one if it has no number.
    """

    pattern: str
    code: str
    device: str
    groups: Mapping[str, str]
    assertion: Assertion = Assertion.ONCE
    count: int = 1


class Matcher:
    """All patterns, compiled."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        """Raises ``ValueError`` naming the pattern that does not compile."""
        self._rules = [_Rule(pattern) for pattern in patterns]
        self._all = ExpressionSet([pattern.regex for pattern in patterns])
        give_back()

    def match(self, messages: Sequence[str], continued: Container[int] = ()) -> list[Match | None]:
        """What each line is, None for most. ``continued``: the places of those that continue another line."""
        return [self._first(message, continues=place in continued) for place, message in enumerate(messages)]

    def _first(self, message: str, *, continues: bool) -> Match | None:
        text = message.encode(errors="backslashreplace")
        for number in self._all.matching(text):
            rule = self._rules[number]
            if continues and not rule.continuation:
                continue
            if (groups := rule.groups(text)) is not None:
                return None if begins_with_a_long_name(message) else rule.describe(groups)
        return None


class _Rule:
    def __init__(self, pattern: Pattern) -> None:
        try:
            self._regex = Expression(pattern.regex)
            self._unless = Expression(pattern.unless) if pattern.unless else None
            self._find = Expression(pattern.find) if pattern.find else None
        except ExpressionError as error:
            raise ValueError(f"pattern {pattern.id}: {error}") from error
        self.continuation = pattern.continuation
        self._id = pattern.id
        self._assertion = pattern.assertion
        self._code = _pieces(pattern.code)
        self._unnamed = _pieces(pattern.unnamed or pattern.code)
        self._device = _pieces(
            pattern.device if pattern.device == NODE or "{" in pattern.device else f"{{{pattern.device}}}"
        )
        used = {group for _, group in (*self._code, *self._unnamed, *self._device) if group is not None}
        self._part = _pieces(pattern.part)
        used |= {group for _, group in self._part if group is not None}
        names = self._regex.names | (self._find.names if self._find is not None else set())
        if absent := used - names:
            raise ValueError(f"pattern {pattern.id}: no group named {', '.join(sorted(absent))}")

    def groups(self, text: bytes) -> Mapping[str, str] | None:
        """The named groups that took part; None where the line does not match."""
        found = self._regex.match(text)
        if found is None or (self._unless is not None and self._unless.match(text) is not None):
            return None
        if self._find is None:
            return found
        rest = found.get(REST, "").encode()
        groups = {name: value for name, value in found.items() if name != REST}
        groups.update(self._find.search(rest) or {})
        return groups

    def describe(self, groups: Mapping[str, str]) -> Match:
        is_named = all(group is None or group in groups for _, group in self._device)
        return Match(
            pattern=self._id,
            code=as_name(_filled(self._code if is_named else self._unnamed, groups)),
            device=self._device_in(groups) if is_named else NODE,
            groups=groups,
            assertion=self._assertion,
            count=_times(groups.get(COUNT, "")),
        )

    def _device_in(self, groups: Mapping[str, str]) -> str:
        device = device_name(_filled(self._device, groups))
        is_part = bool(self._part) and all(group is None or group in groups for _, group in self._part)
        return as_name(f"{device}/{_filled(self._part, groups)}") if is_part else device


def _pieces(template: str) -> list[tuple[str, str | None]]:
    return [(literal, group) for literal, group, _, _ in string.Formatter().parse(template)]


def _filled(pieces: Sequence[tuple[str, str | None]], groups: Mapping[str, str]) -> str:
    return "".join(literal + groups.get(group or "", "") for literal, group in pieces)


def _times(text: str) -> int:
    """The number in a group; one if it has none."""
    if not (text.isascii() and text.isdecimal()):
        return 1
    digits = text.lstrip("0")
    return _MAX_COUNT if len(digits) > len(str(_MAX_COUNT)) else min(max(int(digits or "1"), 1), _MAX_COUNT)


def device_name(text: str) -> str:
    """The name of a device: a PCI address in one form, anything else as it is; the node if empty.

    >>> device_name("0000:3B:00"), device_name("3b:00.1"), device_name("00000000:3b:00.0")
    ('0000:3b:00.0', '0000:3b:00.1', '0000:3b:00.0')
    """
    if (address := _PCI.fullmatch(text)) is None:
        return as_name(text) if text.strip() else NODE
    domain, bus, slot, function = address.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{slot}.{function or '0'}".lower()


def as_name(text: str) -> str:
    """Fit for a name: printable ASCII without spaces, bounded, never empty."""
    return _UNPRINTABLE.sub("_", text)[:_MAX_NAME] or "_"
