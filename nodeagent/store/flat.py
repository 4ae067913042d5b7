"""Cells with values of their own that are stored as one map: the store is older than these values.

What is stored are the names and the fields of the classes; only a field that has another name in the store is
named, by the caller. It reads and writes no file.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

C = TypeVar("C")


class Flat(Generic[C]):
    """The stored form of one class of cells. ``stored_as``: the name in the store by the field's, where they
    differ. A field that is missing takes its default, and one that is unknown is ignored.
    """

    def __init__(self, kind: type[C], stored_as: Mapping[str, str]) -> None:
        self._kind = kind
        own: Mapping[str, type[Any]] = get_type_hints(kind)
        self._values = {name: of for name, of in own.items() if is_dataclass(of)}
        owners: Mapping[str, type[Any]] = {"": kind, **self._values}
        self._places: list[tuple[str, str, str]] = []
        stored: list[Any] = []
        for owner, of in owners.items():
            hints = get_type_hints(of)
            for field in fields(of):
                if owner or field.name not in self._values:
                    name = stored_as.get(field.name, field.name)
                    self._places.append((owner, field.name, name))
                    stored.append((name, hints[field.name], *_default(field)))
        self._decoder = msgspec.msgpack.Decoder(msgspec.defstruct(kind.__name__, stored, kw_only=True))

    def flattened(self, cell: C) -> Mapping[str, Any]:
        owners = {"": cell, **{value: getattr(cell, value) for value in self._values}}
        return {stored: getattr(owners[owner], name) for owner, name, stored in self._places}

    def decode(self, body: bytes) -> C:
        """Raises what msgspec raises where the body does not fit."""
        stored = self._decoder.decode(body)
        given: dict[str, dict[str, Any]] = {owner: {} for owner in ("", *self._values)}
        for owner, name, stored_name in self._places:
            given[owner][name] = getattr(stored, stored_name)
        values = {value: of(**given[value]) for value, of in self._values.items()}
        return self._kind(**given[""], **values)


def _default(field: Field[Any]) -> tuple[Any, ...]:
    if field.default is not MISSING:
        return (field.default,)
    if field.default_factory is not MISSING:
        return (msgspec.field(default_factory=field.default_factory),)
    return ()
