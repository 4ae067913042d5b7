"""Loads folders of fault tables into one catalog, or reports everything that is wrong with them.

Nothing is half applied: one problem anywhere and there is no catalog.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables import size
from nodeagent.tables.canonical import with_digest
from nodeagent.tables.check import check
from nodeagent.tables.layers import Merged, merge, read_layer, table_files
from nodeagent.tables.rule_kinds import RULE_SECTIONS, Rule
from nodeagent.tables.sections.sources import DEFAULT_TRAITS
from nodeagent.toml.problem import Problem, Problems


@dataclass(frozen=True, slots=True)
class Loaded:
    """A sound catalog, and what is allowed but unlikely to be intended, one line each."""

    catalog: Catalog
    warnings: tuple[str, ...]


class TablesError(Exception):
    """The tables cannot be used; str() is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def load_catalog(folders: Sequence[Path], settings: Settings) -> Loaded:
    """Lays the folders over one another, later ones winning. The first must exist; another may be absent.

    Raises TablesError with every problem found.
    """
    problems, warnings = Problems(), list[str]()
    files = [file for folder in folders for file in table_files(folder, lambda _reported_as_it_is_read: None)]
    _raise_any(size.too_many_bytes(files))
    layers = []
    for position, folder in enumerate(folders):
        if position and not folder.exists():
            warnings.append(f"{folder}: no such folder; taken as empty")
        else:
            layers.append(read_layer(folder, problems.add, warnings.append, over_others=bool(position)))
    merged = merge(layers, problems.add, warnings.append)
    _raise_any(size.too_many(merged))
    if not merged.rows and not problems:
        named = ", ".join(map(str, folders)) or "no folder"
        problems.add(Problem(file=named, line=None, key="", reason="holds no table with a code"))
    catalog = _catalog(merged, settings)
    # Rows of a file that could not be read would be reported as missing, once more and falsely.
    if merged.whole:
        check(merged, catalog, problems.add, warnings.append)
    if problems:
        raise TablesError(problems.found())
    return Loaded(with_digest(catalog), tuple(warnings))


def _raise_any(problems: Iterable[Problem]) -> None:
    """What is too large is not looked at any further."""
    if found := tuple(problems):
        raise TablesError(found)


def _catalog(merged: Merged, settings: Settings) -> Catalog:
    rows = {key: entry.value for key, entry in merged.rows.items() if entry.value is not None}
    return Catalog(
        digest="",
        rows=rows,
        **{section.in_catalog: _of_kind(merged, section.rule) for section in RULE_SECTIONS.values()},
        decoding=merged.decoding,
        sources={**DEFAULT_TRAITS, **merged.sources},
        settings=settings,
    )


def _of_kind(merged: Merged, kind: type[Rule]) -> tuple[Any, ...]:
    return tuple(rule.value for rule in merged.rules if isinstance(rule.value, kind))
