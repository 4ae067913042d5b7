"""The files of one configuration: which are read, and how a later one changes single keys of an earlier one.

Tables merge key by key; any other value, a list too, is replaced as a whole. Each key keeps its file and
line. This module opens no file, and does not know what a key means.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem
from nodeagent.toml.source import ParsedFile, dotted, files_of


@dataclass(frozen=True, slots=True)
class FileSetting:
    """A key that a file sets: its value as TOML has it, its file and line."""

    key: str
    value: object
    file: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Layers:
    """The files that were read, later ones winning. Without any, every key has its default."""

    sources: Sequence[ParsedFile]

    def data(self) -> dict[str, Any]:
        """The merged content of the files."""
        merged: dict[str, Any] = {}
        for source in self.sources:
            _lay_over(merged, source.data)
        return merged

    def problem(self, path: KeyPath, reason: str) -> Problem:
        """A problem at the place of the key, or else of the closest one around it."""
        source = self._source_of(path)
        if source is None:
            return Problem(file="no file", line=None, key=dotted(path), reason=reason)
        return source.problem(path, reason)

    def file_of(self, path: KeyPath) -> str | None:
        """The file that sets the key, None where none does."""
        return next((each.file for each in reversed(self.sources) if _holds(each.data, path)), None)

    def settings(self) -> Iterator[FileSetting]:
        """Every key that a file sets, in the order in which they were first named."""
        for path, value in _leaves(self.data()):
            if (source := self._source_of(path)) is not None:
                yield FileSetting(dotted(path), value, source.file, source.lines.of(path))

    def _source_of(self, path: KeyPath) -> ParsedFile | None:
        for length in range(len(path), 0, -1):
            for source in reversed(self.sources):
                if _holds(source.data, path[:length]):
                    return source
        return next(iter(self.sources), None)


def _lay_over(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if not isinstance(value, Mapping):
            below[key] = value
            continue
        if not isinstance(below.get(key), dict):
            below[key] = {}
        _lay_over(below[key], value)


def _holds(data: object, path: KeyPath) -> bool:
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return False
        data = data[key]
    return True


def _leaves(data: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, key))
        elif not isinstance(value, Mapping):
            yield (*above, key), value


ENDING: Final = ".toml"
MOST_FILES: Final = 64


def drop_in_folder(file: Path) -> Path:
    """``nodeagent.d`` next to ``nodeagent.toml``; for a file with another ending ``.d`` behind its name."""
    return file.parent / f"{file.name.removesuffix(ENDING)}.d"


def drop_ins(file: Path, report: Callable[[Problem], None]) -> list[Path]:
    """The drop-ins of the configuration at ``file``, which need not exist, in the order of their names.

    None where there is no such folder, and after having reported what is wrong with it.
    """
    folder = drop_in_folder(file)
    if not os.path.lexists(folder):
        return []
    return files_of(folder, (ENDING,), MOST_FILES, "configuration files", report)
