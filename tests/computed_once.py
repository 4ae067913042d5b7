"""What one test after another computes from the same text is computed once in each process of the suite.

Only functions of a text alone: the parser of a table's file, what reads its rows and rules, and the compiler
of regular expressions. All of ``fault_codes`` goes through them whenever its tables are loaded or a log is
read with them. Processes that tests start compute these by themselves; they find loaded tables in one cache,
as services do. Daemons on the shipped tables have a cache
of their own, for the whole run: it keeps few, and other tables would push these out.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import pytest

from nodeagent.drivers.kmsg import match
from nodeagent.expressions import Expression, ExpressionSet
from nodeagent.tables import layers
from nodeagent.tables.patterns import templates
from nodeagent.tables.sections import rows, rules
from nodeagent.tables.sections.schema import FileForm
from nodeagent.toml.fields import Report
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem
from nodeagent.toml.source import ParsedFile, read_source
from tests.shipped import CACHE

T = TypeVar("T")
ReadEntries = Callable[[ParsedFile, FileForm, Report], list[T]]

_cache: Final = TemporaryDirectory(prefix="nodeagent-tests-")
_parsed: Final[dict[tuple[Path, bytes], ParsedFile]] = {}

_expression: Final = lru_cache(maxsize=1024)(Expression)
_newest_set: Final = lru_cache(maxsize=1)(ExpressionSet)
"""A set remembers much of the texts that it has seen: 32 MiB and more."""


def remember(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone."""
    patch.setattr(layers, "read_source", _parsed_once)
    patch.setattr(layers, "read_rows", _read_once(rows.read_rows))
    patch.setattr(layers, "read_rules", _read_once(rules.read_rules))
    patch.setattr(match, "Expression", _expression)
    patch.setattr(match, "ExpressionSet", _expression_set)
    patch.setattr(templates, "Expression", _expression)
    patch.setenv("CACHE_DIRECTORY", _cache.name)
    if CACHE not in os.environ:  # else it is that of the process that started this one
        patch.setenv(CACHE, _cache.name)


def with_shipped_tables() -> Mapping[str, str]:
    """The environment of a daemon on ``fault_codes`` as they are."""
    return {**os.environ, "CACHE_DIRECTORY": os.environ[CACHE]}


def _expression_set(regexes: Sequence[str]) -> ExpressionSet:
    return _newest_set(tuple(regexes))


def _parsed_once(path: Path, report: Callable[[Problem], None]) -> ParsedFile | None:
    """What is no sound file is read, and reported, each time."""
    if not path.is_file():
        return read_source(path, report)
    key = (path, path.read_bytes())
    if key not in _parsed:
        source = read_source(path, report)
        if source is None:
            return None
        _parsed[key] = source
    return _parsed[key]


def _read_once(read: ReadEntries[T]) -> ReadEntries[T]:
    """The defaults stand in the file too. What is refused is read, and reported, each time."""
    known: dict[int, tuple[ParsedFile, list[T]]] = {}

    def once(source: ParsedFile, defaults: FileForm, report: Report) -> list[T]:
        if id(source) not in known:
            reported = list[str]()

            def note(path: KeyPath, reason: str) -> None:
                reported.append(reason)
                report(path, reason)

            found = read(source, defaults, note)
            if reported:
                return found
            known[id(source)] = source, found  # which keeps the source, and so its id
        return [*known[id(source)][1]]

    return once
