"""Finds the line of each table and key in a TOML text; ``tomllib`` does not give it.

It reads only text that ``tomllib`` has accepted, splits it into statements, and asks ``tomllib`` for the
meaning of any key that is not bare. It interprets no values.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

KeyPath = tuple[str | int, ...]
"""Keys and, in arrays of tables, indexes from the top of the file: ``("frequency", 0, "times")``."""

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*|\n|[\[{]|[\]}]"
    r"""|[^"'#\n\[\]{}]+|.""",
    re.DOTALL,
)
_HEADER = re.compile(
    r"""^\[(?:\[([A-Za-z0-9_-]+)\]|([A-Za-z0-9_-]+)\.(?:([A-Za-z0-9_-]+)|"([^"\\\n]*)"))\][ \t]*(?:\#.*)?$""",
    re.MULTILINE,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KEY_OF_STATEMENT = re.compile(r"""((?:[^="']|"(?:\\.|[^"\\])*"|'[^']*')*)=""")


class LineNumbers(Protocol):
    """Line numbers, from 1, of the keys of one text, however it is written."""

    def of(self, path: KeyPath) -> int | None:
        """The line of the key or of the closest one around it that has one."""


class TomlLines:
    """Line numbers, from 1, of the tables and keys of one TOML text.

    Every row is asked for its line, so the headers are found by one fast pass; ``data``, what ``tomllib``
    made of the text, shows whether it took a text or a list for a header.
    All other keys are looked for when the first of them is asked for, which only a problem does.
    """

    def __init__(self, text: str, data: Mapping[str, Any]) -> None:
        self._text = text
        self._headers = _headers(text)
        if not _are_all(self._headers, data):
            self._headers = {}
        self._keys: _Keys | None = None

    def of(self, path: KeyPath) -> int | None:
        """The line of the key or, where it has none (inline tables), of the closest one around it."""
        if (line := self._headers.get(path)) is not None:
            return line
        if self._keys is None:
            self._keys = _Keys(self._text)
        return self._keys.of(path)


def _headers(text: str) -> dict[KeyPath, int]:
    """The lines of ``[codes.X]`` and ``[[rule]]``, as far as they look like it."""
    lengths, found = dict[str, int](), dict[KeyPath, int]()
    line, counted = 1, 0
    for match in _HEADER.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        array, table, bare, quoted = match.groups()
        if array is not None:
            index = lengths[array] = lengths.get(array, -1) + 1
            found[array, index] = line
        else:
            found[table, bare if bare is not None else quoted] = line
    return found


def _are_all(headers: Mapping[KeyPath, int], data: Mapping[str, Any]) -> bool:
    """Whether these are the headers of every table that the data hold, and of nothing else."""
    expected = set[KeyPath]()
    for key, value in data.items():
        if isinstance(value, dict):
            expected.update((key, inner) for inner in value)
        elif isinstance(value, list):
            expected.update((key, index) for index in range(len(value)))
    return expected == headers.keys()


class _Keys:
    """Every table and key of one TOML text."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        self._array_lengths: dict[KeyPath, int] = {}
        self._table: KeyPath = ()
        for line, statement in _statements(text):
            self._take(line, statement)

    def of(self, path: KeyPath) -> int | None:
        for length in range(len(path), 0, -1):
            if (line := self._lines.get(path[:length])) is not None:
                return line
        return None

    def _take(self, line: int, statement: str) -> None:
        if statement.startswith("[["):
            array = self._within_arrays(_key_parts(statement[2:-2]))
            index = self._array_lengths.get(array, 0)
            self._array_lengths[array] = index + 1
            self._table = (*array, index)
            self._note(self._table, line)
        elif statement.startswith("["):
            self._table = self._within_arrays(_key_parts(statement[1:-1]))
            self._note(self._table, line)
        elif (key := _KEY_OF_STATEMENT.match(statement)) is not None:
            self._note((*self._table, *_key_parts(key[1])), line)

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _within_arrays(self, parts: tuple[str, ...]) -> KeyPath:
        """``[a.b]`` under ``[[a]]`` means the last element of a."""
        path: KeyPath = ()
        for position, part in enumerate(parts):
            path = (*path, part)
            length = self._array_lengths.get(path)
            if length is not None and position < len(parts) - 1:
                path = (*path, length - 1)
        return path


def _statements(text: str) -> Iterator[tuple[int, str]]:
    line, depth = 1, 0
    begun, parts = 1, list[str]()
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n" and depth == 0:
            if statement := "".join(parts).strip():
                yield begun, statement
            parts.clear()
        elif not token.startswith("#"):
            if not parts:
                begun = line
            if parts or token.strip():
                parts.append(token)
            depth += (token in "[{") - (token in "]}")
        line += token.count("\n")
    if statement := "".join(parts).strip():
        yield begun, statement


def _key_parts(key: str) -> tuple[str, ...]:
    key = key.strip()
    if _BARE_KEY.fullmatch(key):
        return (key,)
    parts = list[str]()
    value: Any = tomllib.loads(f"{key} = 0")
    while isinstance(value, dict):
        ((part, value),) = value.items()
        parts.append(part)
    return tuple(parts)
