"""Checks objects and requests by what Kubernetes publishes: ``schema/README.md`` says where it is from."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker

SCHEMA: Final = Path(__file__).parent / "schema"
DEFINITIONS: Final[Mapping[str, Any]] = json.loads((SCHEMA / "definitions.json").read_text())
PATHS: Final[Mapping[str, Any]] = json.loads((SCHEMA / "paths.json").read_text())

NODE: Final = "io.k8s.api.core.v1.Node"
BY_KIND: Final = {name.rpartition(".")[2]: name for name in DEFINITIONS if name.startswith("io.k8s.api.")}


def wrong_with(name: str, value: object) -> list[str]:
    """What the schema says against it; [] if nothing."""
    found = _validator(name).iter_errors(value)
    return [f"{each.json_path}: {each.message}" for each in found]


def operation(method: str, path: str) -> tuple[str, Mapping[str, Any]] | None:
    """The path's form and the operation, None where the API has none."""
    for form, operations in PATHS.items():
        parts, asked = form.split("/"), path.split("/")
        if len(parts) == len(asked) and all(
            part.startswith("{") or part == given for part, given in zip(parts, asked, strict=True)
        ):
            found = operations.get(method.lower())
            return None if found is None else (form, found)
    return None


def wrong_with_query(allowed: Mapping[str, str], query: Mapping[str, str]) -> list[str]:
    """Unknown parameters, and those of another type."""
    found = [f"query: no parameter {name}" for name in query if name not in allowed]
    for name, text in query.items():
        kind = allowed.get(name)
        if (kind == "boolean" and text not in ("true", "false")) or (
            kind == "integer" and not text.isdigit()
        ):
            found.append(f"query: {name}={text} is no {kind}")
    return found


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = {"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS}
    formats = FormatChecker(())
    formats.checks("date-time", raises=ValueError)(_is_time)
    return Draft202012Validator(schema, format_checker=formats)


def _is_time(value: object) -> bool:
    """``metav1.Time`` is of RFC 3339 and says its zone."""
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None
