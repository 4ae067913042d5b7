"""Rows and rules as the TOML that reads back as the same rows and rules."""

import functools
from collections.abc import Iterable

import msgspec

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.model import Recovery
from nodeagent.tables import texts
from nodeagent.tables.rule_kinds import Rule, sort_of
from nodeagent.tables.sections.schema import RowForm
from nodeagent.toml.fields import reads_duration
from nodeagent.toml.writing import key_lines, key_text


def to_toml(rows: Iterable[Row], rules: Iterable[Rule]) -> str:
    """The tables of the rules and then of the rows, each with a blank line before it."""
    parts = [f"\n[[{sort_of(rule).key}]]\n{key_lines(rule_values(rule))}" for rule in rules]
    parts += [f"\n[codes.{key_text(row.code)}]\n{key_lines(row_values(row))}" for row in rows]
    return "".join(parts)


def row_values(row: Row) -> dict[str, object]:
    """The values of the row's table, by key; a key that the table may leave out is left out."""
    values = {field.encode_name: getattr(row, field.name) for field in _own_fields(RowForm)}
    values["clear_on"] = texts.clear_on(row.clear_on)
    return {key: value for key, value in values.items() if not _may_be_left_out(RowForm, key, value)}


def rule_values(rule: Rule) -> dict[str, object]:
    """The values of the rule's table, by key, durations as text; a key that it may leave out is left out."""
    form = sort_of(rule).form
    values = dict[str, object]()
    for field in _own_fields(form):
        value = getattr(rule, field.name)
        if _may_be_left_out(form, field.encode_name, value):
            continue
        values[field.encode_name] = texts.duration(value) if reads_duration(field.type) else value
    return values


@functools.cache
def _own_fields(form: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return tuple(field for field in msgspec.structs.fields(form) if field.name != "enabled")


def _may_be_left_out(form: type[msgspec.Struct], key: str, value: object) -> bool:
    """Of the keys that the head of a file may set for all its rows, only empty ones are left out."""
    if value is None or value in ({}, "") or value is Recovery.LEVEL:
        return True
    default = next(field.default for field in _own_fields(form) if field.encode_name == key)
    return key not in ("kind", "vendor", "clear_on") and bool(value == default)
