"""Kernel-log patterns as tables see them: is the regex sound, which codes can it produce.

It matches no kernel line: that is the kmsg driver's part.
"""

import functools
import re
import string
import warnings
from collections.abc import Iterator
from typing import Final

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import NODE
from nodeagent.core.state.names import PART
from nodeagent.tables.patterns import anchored, backtracking

_PART = re.compile(PART + r"\{[A-Za-z_]\w*\}")

COUNT: Final = "count"
"""The group that says how many times a line tells of what it tells of (``nodeagent.drivers.kmsg.match``)."""
_COUNTS: Final = re.compile(r"\(\?P<count>(?:\\d|\[0-9\])(?:\+|\{\d+(?:,\d+)?\})?\)")
_NO_NUMBER: Final = (
    'its group "count" may take more than a number, and a line counts as often as that group says; write'
    r" (?P<count>\d{1,9})"
)


def template_pieces(template: str) -> tuple[tuple[str, str | None], ...]:
    """``XID_{code}`` as pairs of literal text and the group after it; ValueError where it is no template."""
    pieces = list[tuple[str, str | None]]()
    for literal, group, spec, conversion in string.Formatter().parse(template):
        if spec or conversion or (group is not None and not group.isidentifier()):
            raise ValueError("braces hold the name of a group and nothing else")
        pieces.append((literal, group))
    return tuple(pieces)


def pattern_objections(
    code: str, regex: str, device: str, part: str = "", unnamed: str = ""
) -> Iterator[tuple[str, str]]:
    """What is wrong with a pattern: pairs of key and reason."""
    groups: tuple[str, ...] | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = re.compile(regex)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        yield "regex", f"not a regular expression: {error}"
    else:
        groups = tuple(compiled.groupindex)
        if compiled.search("") is not None:
            yield "regex", "matches an empty line, and so every line"
        elif (reason := anchored.objection(regex)) is not None:
            yield "regex", reason
        elif COUNT in groups and not _COUNTS.search(regex):
            yield "regex", _NO_NUMBER
        yield from (("regex", reason) for reason in backtracking.objections(regex))
    has = "" if groups is None else f"the groups of its regex are {', '.join(groups)}"
    has = has if groups else "its regex names no group"
    yield from _template_objections("code", code, groups, has)
    yield from _template_objections("part", part, groups, has)
    yield from _template_objections("unnamed", unnamed, groups, has)
    if unnamed and device == NODE:
        yield "unnamed", 'stands beside device = "node", so that no line could have it; leave it out'
    if part and not _PART.fullmatch(part):
        yield "part", f'"{part}": {PART} and a group is right, such as "{PART}{{gi}}"'
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
