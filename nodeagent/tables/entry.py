"""An entry: one row, rule or pattern of one file, and its place there. It decides nothing about layers.

An overlay sets only some of its keys, and takes the others from the entry that it lies over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar, cast

import msgspec

from nodeagent.tables.sections.schema import FileForm
from nodeagent.toml.fields import Report, refuse_unknown_keys
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import ParsedFile

Value = TypeVar("Value", covariant=True)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Value]):
    """``key`` names it across files: a canonical code or an id. ``value`` None takes away what is there.

    ``strict`` is false for an entry of a vendor's own file: a contradiction there is only warned of, as the
    vendor does. ``has_level`` is false for a row that has the default level, and takes that of the row that
    it lies over.
    """

    key: str
    value: Value | None
    source: ParsedFile
    path: KeyPath
    strict: bool = True
    has_level: bool = True

    @property
    def place(self) -> str:
        """``FILE:LINE``"""
        return self.source.place(self.path)


@dataclass(frozen=True, slots=True)
class SourceAbove(ParsedFile):
    """A file of a folder that lies over others: it may change single keys of their entries."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """``key`` as in an entry. ``values`` are those of the keys in its table, by field of the form.

    ``defaults`` is the head of the file, ``section`` the key of a rule's kind, ``codes`` for a row.
    """

    key: str
    section: str
    values: Mapping[str, Any]
    source: ParsedFile
    path: KeyPath
    defaults: FileForm

    @property
    def place(self) -> str:
        """``FILE:LINE``"""
        return self.source.place(self.path)

    @property
    def table(self) -> Mapping[str, Any]:
        """As it is in the file."""
        found: Any = self.source.data
        for part in self.path:
            found = found[part]
        return cast(Mapping[str, Any], found)


def is_removal(table: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the table sets ``enabled = false``: then no other key is needed."""
    return isinstance(table, Mapping) and table.get("enabled") is False


def removal_is_sound(
    form: type[msgspec.Struct], table: Mapping[str, Any], path: KeyPath, report: Report
) -> bool:
    known = [field.encode_name for field in msgspec.structs.fields(form)]
    return refuse_unknown_keys(table, known, path, report)
