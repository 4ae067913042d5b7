"""Kernel-log patterns as tables see them: is the regex sound, which codes can it produce.

It matches no kernel line: that is the kmsg driver's part.
"""

import functools
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import NODE
from nodeagent.core.state.names import PART
from nodeagent.expressions import Expression, ExpressionError
from nodeagent.tables.patterns import anchored
from nodeagent.tables.patterns.syntax import UnsupportedError, parse

_PART = re.compile(PART + r"\{[A-Za-z_]\w*\}")

COUNT: Final = "count"
"""The group that holds how many errors a line reports (``nodeagent.drivers.kmsg.match``)."""
REST: Final = "rest"
"""The group in which ``find`` is searched; it is for nothing else then."""

_COUNTS: Final = re.compile(r"\(\?P<count>(?:\\d|\[0-9\])(?:\+|\{\d+(?:,\d+)?\})?\)")
_NO_NUMBER: Final = (
    'its group "count" may take more than a number, and a line counts as often as that number; write'
    r" (?P<count>\d{1,9})"
)


class PatternKeys(Protocol):
    """What of a pattern is checked here."""

    @property
    def code(self) -> str: ...
    @property
    def regex(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def unless(self) -> str: ...
    @property
    def find(self) -> str: ...
    @property
    def unnamed(self) -> str: ...
    @property
    def part(self) -> str: ...


def template_pieces(template: str) -> tuple[tuple[str, str | None], ...]:
    """``XID_{code}`` as pairs of literal text and the group after it; ValueError where it is no template."""
    pieces = list[tuple[str, str | None]]()
    for literal, group, spec, conversion in string.Formatter().parse(template):
        if spec or conversion or (group is not None and not group.isidentifier()):
            raise ValueError("braces hold the name of a group and nothing else")
        pieces.append((literal, group))
    return tuple(pieces)


def pattern_objections(pattern: PatternKeys) -> Iterator[tuple[str, str]]:
    """What is wrong with a pattern: pairs of key and reason."""
    regex = _compiled(pattern.regex)
    find = _compiled(pattern.find) if pattern.find else None
    groups: tuple[str, ...] | None = None
    if isinstance(regex, str):
        yield "regex", regex
    else:
        groups = tuple(regex.names)
        yield from (("regex", reason) for reason in _regex_objections(regex, pattern.regex))
    if pattern.unless:
        yield from (("unless", reason) for reason in _unless_objections(pattern.unless))
    if isinstance(find, str):
        yield "find", find
        groups = None
    elif find is not None and groups is not None:
        yield from (("find", reason) for reason in _find_objections(find, pattern.find, groups))
        groups = tuple(dict.fromkeys((*(name for name in groups if name != REST), *find.names)))
    yield from _places_objections(pattern, groups)


def uncompiled(patterns: Iterable[PatternKeys]) -> str | None:
    """Which pattern does not compile and why, such as one that an earlier version took; None: all do."""
    for pattern in patterns:
        for regex in filter(None, (pattern.regex, pattern.unless, pattern.find)):
            try:
                Expression(regex)
            except ExpressionError as error:
                return f"pattern of {pattern.code}: {error}"
    return None


def _compiled(regex: str) -> Expression | str:
    """The expression, or why it is refused."""
    try:
        compiled = Expression(regex)
        parse(regex)
    except (ExpressionError, UnsupportedError) as error:
        return str(error)
    return compiled


def _regex_objections(compiled: Expression, regex: str) -> Iterator[str]:
    if compiled.search(b"") is not None:
        yield "matches an empty line, and so every line"
    elif (reason := anchored.objection(parse(regex))) is not None:
        yield reason
    elif COUNT in compiled.names and not _COUNTS.search(regex):
        yield _NO_NUMBER


def _unless_objections(unless: str) -> Iterator[str]:
    compiled = _compiled(unless)
    if isinstance(compiled, str):
        yield compiled
    elif compiled.search(b"") is not None:
        yield "matches every line, so that the pattern would match none"
    elif not anchored.begins(parse(unless)):
        yield "is matched where the message begins, as regex is: it must begin with ^ in every branch"


def _find_objections(compiled: Expression, find: str, groups: Sequence[str]) -> Iterator[str]:
    if REST not in groups:
        yield (
            f'is searched in what the group "{REST}" of regex matched, and regex has no such group; put'
            f" (?P<{REST}> ) around the part of the message that it is to search"
        )
    if both := sorted(compiled.names & set(groups)):
        yield f'names the group "{both[0]}", as regex does; give it another name'
    if not compiled.names:
        yield "names no group, and is there for groups alone; name one, as (?P<npu>\\d{1,4}), or leave it out"
    elif compiled.search(b"") is not None:
        yield "matches an empty text, and so finds nothing"
    if COUNT in compiled.names and not _COUNTS.search(find):
        yield _NO_NUMBER


def _places_objections(pattern: PatternKeys, groups: tuple[str, ...] | None) -> Iterator[tuple[str, str]]:
    """Whether the keys that may name groups name those that are there; ``groups`` None: it is not known."""
    has = "" if groups is None else f"the groups of its regex are {', '.join(groups)}"
    has = has if groups else "its regex names no group"
    yield from _template_objections("code", pattern.code, groups, has)
    yield from _template_objections("part", pattern.part, groups, has)
    yield from _template_objections("unnamed", pattern.unnamed, groups, has)
    if pattern.unnamed and pattern.device == NODE:
        yield (
            "unnamed",
            'device = "node" names the device of every line, so that none could have this code; leave it out',
        )
    if pattern.part and not _PART.fullmatch(pattern.part):
        yield "part", f'"{pattern.part}": {PART} and a group is right, such as "{PART}{{gi}}"'
    device = pattern.device
    if "{" in device or "}" in device:
        yield from _template_objections("device", device, groups, has)
    elif groups is not None and device != NODE and device not in groups:
        yield "device", f'"{device}" is neither "node" nor a group; {has}'


def _template_objections(
    key: str, template: str, groups: tuple[str, ...] | None, has: str
) -> Iterator[tuple[str, str]]:
    """``groups`` None: of a regex that does not compile, so that only the template's own form is reported."""
    try:
        named = [group for _, group in template_pieces(template) if group is not None]
    except ValueError as error:
        yield key, f'"{template}": {error}'
        return
    for group in named:
        if groups is not None and group not in groups:
            yield key, f'names the group "{group}"; {has}'


def produces(template: str, code: str) -> bool:
    """Whether a pattern with this code template can produce ``code``, for ``XID_*`` one of its family, or
    a refined form ``CODE.DETAIL`` of it."""
    refined, point, _ = template.rpartition(".")
    if point and refined and produces(refined, code):
        return True
    if code.endswith("*"):
        pieces = template_pieces(template)
        family, prefix = canonical(code[:-1]), pieces[0][0].upper()
        if len(pieces) == 1 and pieces[0][1] is None:
            return prefix.startswith(family)
        return prefix.startswith(family) or family.startswith(prefix)
    expression = _expression(template)
    if isinstance(expression, str):
        return expression == canonical(code)
    return expression.fullmatch(code) is not None


@functools.cache
def _expression(template: str) -> re.Pattern[str] | str:
    """What the template's codes look like; of one without groups, the code itself."""
    pieces = template_pieces(template)
    if all(group is None for _, group in pieces):
        return canonical("".join(literal for literal, _ in pieces))
    text = "".join(re.escape(literal) + (".+" if group else "") for literal, group in pieces)
    return re.compile(text, re.IGNORECASE)
