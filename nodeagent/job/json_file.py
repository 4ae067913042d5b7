"""A value as the text of a JSON file that says what it is: its format and version first.

A text that is torn, or is something else, is an error, and never read as if it said less. It reads and writes
no file.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

from nodeagent.job.plain import PlainError, from_plain, to_plain

VERSION: Final = 1

T = TypeVar("T")


class JsonFileError(ValueError):
    """A file does not hold what its name says. The text says why, and is shown to people."""


def encode(value: Any, form: str, **more: str) -> str:
    """With its newline. ``more`` stands before the value's own fields."""
    return json.dumps({"format": form, "version": VERSION, **more, **to_plain(value)}, indent=1) + "\n"


def values_of(text: str, form: str) -> Mapping[str, Any]:
    """Raises ``JsonFileError``."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonFileError(f"not JSON, it may be torn: {error}") from error
    if not isinstance(values, dict) or values.get("format") != form:
        raise JsonFileError(f'format: "{form}"; this file is of something else')
    if values.get("version") != VERSION:
        raise JsonFileError(
            f"version: {VERSION}, not {values.get('version')!r}; use the same nodeagent on all nodes"
        )
    return values


def value_of(of: type[T], values: Mapping[str, Any]) -> T:
    """Nothing may be missing. Raises ``JsonFileError``."""
    missing = [each.name for each in fields(of) if each.name not in values]  # type: ignore[arg-type]
    if missing:
        raise JsonFileError(f"{', '.join(missing)}: missing, it may be torn")
    try:
        return from_plain(of, values)
    except PlainError as error:
        raise JsonFileError(str(error)) from error
