"""Stores of former versions: unpacked, and what of a view they knew."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import Carried, View
from nodeagent.store import codec


def unpacked(former: Path, into: Path) -> Path:
    """The store of a former version, as it left it."""
    with gzip.open(former / "store.db.gz") as packed, (into / "store.db").open("wb") as file:
        shutil.copyfileobj(packed, file)
    return into


async def no_stand_in() -> Catalog:
    raise AssertionError("every catalog is in the store")


def view_of_then(view: View) -> dict[str, Any]:
    """The view as those versions had it: their conditions had all fields themselves, as in the store."""
    now: dict[str, Any] = json.loads(msgspec.json.encode(view))
    stored = (codec.encode_input(Carried(cell=condition)) for condition in view.conditions)
    return {**now, "conditions": [msgspec.msgpack.decode(body) for _, body in stored]}


def by_id(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        cells, key=lambda cell: (cell.get("id", ""), cell.get("name", ""), cell.get("device_id", ""))
    )


def known_then(now: Any, then: Any) -> Any:
    """Without the fields that came since."""
    match now, then:
        case dict(), dict():
            return {key: known_then(now[key], then[key]) for key in then}
        case list(), list():
            return [known_then(*each) for each in zip(now, then, strict=True)]
        case _:
            return now


_TERMS: Final = {
    "is held by": "is used by",
    "reset pending: 779b1000-fd86da6b-8372a4d6-095e6f41-8f4a39ac/reset#1": (
        "reset pending: npu0, npu1, npu8, npu9"
    ),
}


def in_present_terms(value: Any) -> Any:
    """Texts that the present version makes again of what it replays; a stored one stays as it was written."""
    match value:
        case dict():
            return {key: in_present_terms(each) for key, each in value.items()}
        case list() | tuple():
            return [in_present_terms(each) for each in value]
        case str():
            for then, now in _TERMS.items():
                value = value.replace(then, now)
            return value
        case _:
            return value
