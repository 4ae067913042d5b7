"""What all of MindCluster's files have in common: keys in any case, lists that may be absent."""

from collections.abc import Iterator, Mapping
from typing import Any

from nodeagent.toml.fields import shown
from nodeagent.toml.lines import KeyPath

LIST_LIMIT = 65_536


class RefusedKeys(Exception):
    """The file is not in the vendor's form. ``path`` is the key, str() what would be right."""

    def __init__(self, path: KeyPath, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def fields(value: object, path: KeyPath) -> dict[str, tuple[str, Any]]:
    """An object's keys in lower case, each with the key as written and its value.

    The vendor's reader takes a key in any case. Raises Refused where ``value`` is no object.
    """
    if not isinstance(value, Mapping):
        raise RefusedKeys(path, f"{shown(value)} is given where an object is needed")
    return {key.lower(): (key, item) for key, item in value.items()}


def entries(value: object, path: KeyPath) -> Iterator[str]:
    """The texts of a list that may be absent. Raises Refused where it is none, or holds something else."""
    if value is None:
        return
    if not isinstance(value, list) or len(value) > LIST_LIMIT:
        raise RefusedKeys(path, f"{shown(value)} is given where a list of codes in quotes is needed")
    for item in value:
        if not isinstance(item, str):
            raise RefusedKeys(path, f"{shown(item)} is given where a code in quotes is needed")
        yield item
