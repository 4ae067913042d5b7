"""An entry: one row, rule or pattern of one file, and where it stands. It decides nothing about layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar

import msgspec

from nodeagent.toml.fields import Report, refuse_unknown_keys
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.source import Source

Value = TypeVar("Value", covariant=True)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Value]):
    """``key`` names it across files: a canonical code or an id. ``value`` None takes away what is there.

    ``strict`` is false for what a vendor's own file says: that is only warned of, as the vendor does.
    ``says_level`` is false for a row that has the default level, and takes that of the row that it lies over.
    """

    key: str
    value: Value | None
    source: Source
    path: KeyPath
    strict: bool = True
    says_level: bool = True

    @property
    def place(self) -> str:
        """``FILE:LINE``"""
        return self.source.place(self.path)


def is_removal(table: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the table says ``enabled = false``: then no other key is needed."""
    return isinstance(table, Mapping) and table.get("enabled") is False


def removal_is_sound(
    form: type[msgspec.Struct], table: Mapping[str, Any], path: KeyPath, report: Report
) -> bool:
    known = [field.encode_name for field in msgspec.structs.fields(form)]
    return refuse_unknown_keys(table, known, path, report)
