"""The body of a request for a job, as ModelArts takes it: JSON with the annotations in its metadata.

    {"kind": "job", "metadata": {"annotations": {"fault-tolerance/job-retry-num": "3"}}}

ModelArts, "Training Job Restart Upon Suspension" and "Recovering a Training Job". Labels of the metadata are
read alike: MindCluster has some of its keys there. What else the body holds is the platform's, and is passed
over. It reads text, and opens no file.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

EXAMPLE: Final = '{"kind":"job","metadata":{"annotations":{"fault-tolerance/job-retry-num":"3"}}}'
_IN_METADATA: Final = ("annotations", "labels")


class BodyError(ValueError):
    """It is no such body. The message names the key, or the line, and what would be right."""


def is_body(text: str) -> bool:
    """Whether that is JSON rather than lines: no line of a policy begins so."""
    return text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")


def values_in(text: str) -> list[tuple[str, str, str]]:
    """(place, name, value) of each annotation and label. Raises ``BodyError``."""
    try:
        body = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_once_each)
    except BodyError:
        raise
    except json.JSONDecodeError as error:
        raise BodyError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; nested too deep
        raise BodyError(f"not the JSON of a job: {error}") from error
    if not isinstance(body, dict):
        raise BodyError(f"an object is needed: {EXAMPLE}")
    if not isinstance(body.get("kind", "job"), str):
        raise BodyError(f'kind: a text is needed: "job", not {_shown(body["kind"])}')
    if "metadata" not in body:
        raise BodyError(f"metadata: missing; the annotations are needed as in {EXAMPLE}")
    metadata = _object(body["metadata"], "metadata")
    if not any(name in metadata for name in _IN_METADATA):
        raise BodyError(f"metadata.annotations: missing; they are needed as in {EXAMPLE}")
    found = []
    for name in _IN_METADATA:
        place = f"metadata.{name}"
        for key, value in _object(metadata.get(name, {}), place).items():
            if not isinstance(value, str):
                as_text = json.dumps(json.dumps(value))[:80]
                raise BodyError(f"{place}: {key}: a text is needed: {as_text}, not {_shown(value)}")
            found.append((place, key, value))
    return found


def _once_each(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BodyError(f"{twice}: given twice; remove one of them")
    return found


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BodyError(f"{place}: an object is needed, as in {EXAMPLE}, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return json.dumps(value)[:80]
