"""Writes values as TOML that reads back as the same values."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LINE_LENGTH = 110


def key_lines(values: Mapping[str, object]) -> str:
    """``key = value``, one a line; a table within it is an inline one."""
    return "".join(f"{key_text(key)} = {value_text(value)}\n" for key, value in values.items())


def value_text(value: object) -> str:
    """A boolean, number, text, list or table. A long list takes several lines."""
    match value:
        case bool():
            return "true" if value else "false"
        case StrEnum() | str():
            return _quoted(str(value))
        case Mapping():
            items = ", ".join(f"{key_text(key)} = {value_text(item)}" for key, item in value.items())
            return f"{{ {items} }}" if items else "{}"
        case list() | tuple():
            texts = [value_text(item) for item in value]
            line = f"[{', '.join(texts)}]"
            if len(line) <= _LINE_LENGTH:
                return line
            return "[\n" + "".join(f"    {text},\n" for text in texts) + "]"
        case _:
            return repr(value)


def key_text(key: str) -> str:
    """Bare, or in quotes where it has to be."""
    return key if _BARE_KEY.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's as well, which has one of eight digits too. DEL must be escaped; so is
    # every character that is not printable.
    return "".join(map(_seen, json.dumps(text, ensure_ascii=False)))


def _seen(character: str) -> str:
    number = ord(character)
    if character.isprintable():
        return character
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
