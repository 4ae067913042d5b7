"""What one test after another computes from the same text is computed once in each process of the suite.

Only functions of a text alone: the parser of a table's file, the two judges of a pattern's regex, and
Hyperscan's compiler. All of ``fault_codes`` goes through them whenever its tables are loaded or a line is
matched. Processes that tests start compute everything by themselves.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import hyperscan
import pytest

from nodeagent.drivers.kmsg import match
from nodeagent.tables import layers
from nodeagent.tables.patterns import anchored, backtracking
from nodeagent.toml.problem import Problem
from nodeagent.toml.source import Source, read_source

_compile: Final = match._database
_compiled: Final[dict[Any, bytes]] = {}
_parsed: Final[dict[tuple[Path, bytes], Source]] = {}


def remember(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone."""
    patch.setattr(layers, "read_source", _parsed_once)
    patch.setattr(anchored, "objection", cache(anchored.objection))
    patch.setattr(backtracking, "objections", _listed_once(backtracking.objections))
    patch.setattr(match, "_database", _database)


def _parsed_once(path: Path, report: Callable[[Problem], None]) -> Source | None:
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


def _listed_once(objections: Callable[[str], Iterator[str]]) -> Callable[[str], Iterator[str]]:
    listed = cache(lambda regex: tuple(objections(regex)))
    return lambda regex: iter(listed(regex))


def _database(rules: Sequence[Any], numbers: Sequence[int]) -> Any:
    """As compiled, for this caller alone: only one at a time can scan with it."""
    key = tuple((number, rules[number].regex.pattern) for number in numbers)
    if key not in _compiled:
        _compiled[key] = hyperscan.dumpb(_compile(rules, numbers))
    database = hyperscan.loadb(_compiled[key], mode=hyperscan.HS_MODE_BLOCK)
    database.scratch = hyperscan.Scratch(database)
    return database
