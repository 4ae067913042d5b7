"""Rows and rules as the TOML that reads back as the same rows and rules."""

import functools
import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.model import Recovery
from nodeagent.tables import texts
from nodeagent.tables.rule_kinds import Rule, sort_of
from nodeagent.tables.sections.schema import RowForm
from nodeagent.toml.fields import reads_duration

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LINE_LENGTH = 110


def to_toml(rows: Iterable[Row], rules: Iterable[Rule]) -> str:
    """The tables of the rules and then of the rows, each with a blank line before it."""
    parts = [f"\n[[{sort_of(rule).key}]]\n{_fields(rule_values(rule))}" for rule in rules]
    parts += [f"\n[codes.{_key(row.code)}]\n{_fields(row_values(row))}" for row in rows]
    return "".join(parts)


def row_values(row: Row) -> dict[str, object]:
    """What the row's table says, by key; what a table need not say is left out."""
    said = {field.encode_name: getattr(row, field.name) for field in _own_fields(RowForm)}
    said["clear_on"] = texts.clear_on(row.clear_on)
    return {key: value for key, value in said.items() if not _need_not_be_said(RowForm, key, value)}


def rule_values(rule: Rule) -> dict[str, object]:
    """What the rule's table says, by key, durations in words; what it need not say is left out."""
    form = sort_of(rule).form
    said = dict[str, object]()
    for field in _own_fields(form):
        value = getattr(rule, field.name)
        if _need_not_be_said(form, field.encode_name, value):
            continue
        said[field.encode_name] = texts.duration(value) if reads_duration(field.type) else value
    return said


@functools.cache
def _own_fields(form: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return tuple(field for field in msgspec.structs.fields(form) if field.name != "enabled")


def _need_not_be_said(form: type[msgspec.Struct], key: str, value: object) -> bool:
    """Of what the head of a file may say for all its rows only what is empty is left out."""
    if value is None or value in ({}, "") or value is Recovery.LEVEL:
        return True
    default = next(field.default for field in _own_fields(form) if field.encode_name == key)
    return key not in ("kind", "vendor", "clear_on") and bool(value == default)


def _fields(values: Mapping[str, object]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in values.items())


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case StrEnum() | str():
            return _text(str(value))
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
        case list() | tuple():
            items = [_value(item) for item in value]
            line = f"[{', '.join(items)}]"
            return (
                line
                if len(line) <= _LINE_LENGTH
                else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
            )
        case _:
            return repr(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are TOML's as well, which has one of eight digits too. DEL must be escaped; what nobody
    # would see is.
    return "".join(map(_seen, json.dumps(text, ensure_ascii=False)))


def _seen(character: str) -> str:
    number = ord(character)
    if character.isprintable():
        return character
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
