"""Reads one JSON file of MindCluster's, with the same clear errors and the lines of its keys as a TOML table.

It knows JSON, not what MindCluster means by it.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem
from nodeagent.toml.source import ParsedFile, parser_refusal, read_text, within_limits

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|\{')


class _NoNumber(ValueError):
    """A name that only JavaScript takes for a number."""


class JsonLines:
    """Line numbers, from 1, of the strings of a JSON text: of keys as well as of the codes in its lists."""

    def __init__(self, text: str) -> None:
        self._strings = dict[str, list[int]]()
        self._braces = list[int]()
        for match in _TOKEN.finditer(text):
            if match[1] is None:
                self._braces.append(match.start())
            else:
                self._strings.setdefault(match[1], []).append(match.start())
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def of(self, path: KeyPath) -> int | None:
        """The line of the path's last part that is found, each part being looked for behind the one before.

        A number counts the objects of a list, none of which hold objects themselves.
        """
        at = -1
        for part in path:
            places = self._braces if isinstance(part, int) else self._strings.get(part, [])
            index = bisect_right(places, at) + (part if isinstance(part, int) else 0)
            if index >= len(places):
                break
            at = places[index]
        return None if at < 0 else bisect_right(self._newlines, at) + 1


def read_json(
    path: Path, report: Callable[[Problem], None], warn: Callable[[str], None]
) -> ParsedFile | None:
    """The parsed file, which is an object, or None after having reported why there is none."""

    def refuse(reason: str, line: int | None = None) -> None:
        report(Problem(file=str(path), line=line, key="", reason=reason))

    text = read_text(path, report)
    if text is None:
        return None
    twice = list[str]()
    try:
        data = json.loads(
            text, object_pairs_hook=lambda pairs: _object(pairs, twice), parse_constant=_no_number
        )
    except json.JSONDecodeError as error:
        refuse(f"not valid JSON: {error.msg}", error.lineno)
        return None
    except _NoNumber as error:
        refuse(f"not valid JSON: {error}")
        return None
    except Exception as error:  # noqa: BLE001  the boundary of a library: what it cannot take is reported, whatever it is
        line, reason = parser_refusal(text, error)
        refuse(f"not valid JSON: {reason}", line)
        return None
    if not isinstance(data, dict):
        refuse("its lists must be in an object, { }")
        return None
    source = within_limits(ParsedFile(str(path), data, JsonLines(text)), report)
    if source is None:
        return None
    if not _is_unicode(data):
        refuse("not valid JSON: it holds half of a character")
        return None
    for key in twice:
        warn(str(source.problem((key,), "appears twice; the last one counts")))
    return source


def _object(pairs: Sequence[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice += [key for key in made if keys.count(key) > 1]
    return made


def _is_unicode(data: object) -> bool:
    """JSON's escapes can make halves of characters, which cannot be printed."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_number(name: str) -> NoReturn:
    raise _NoNumber(f"{name} is no number")
