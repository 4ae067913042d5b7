"""The number of the schema says which versions can read a store: its tables, and what stands in them.

``fixtures/stores/words.json`` has what each schema may hold: the tags of inputs and cells, and the members of
each enumeration in them. A version before knows only its own, and takes all others for damage.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from nodeagent.core.model import Event
from nodeagent.store import tags
from nodeagent.store.layout import MIGRATIONS, SCHEMA_VERSION
from tests.documents import ROOT

WORDS: Final = Path(__file__).parents[1] / "fixtures/stores/words.json"


def test_what_may_stand_in_a_store_has_not_changed_since_its_schema_got_its_number() -> None:
    """Where it fails: raise SCHEMA_VERSION if a release has this number, then note the words under it."""
    noted = json.loads(WORDS.read_text())

    assert words() == noted[str(SCHEMA_VERSION)]


def test_each_schema_before_is_migrated_and_has_words_that_are_known_still() -> None:
    noted, now = json.loads(WORDS.read_text()), words()

    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
    for schema, of_then in noted.items():
        for name, known in of_then.items():
            assert set(known) <= set(now.get(name, ())), f"schema {schema}: {name}"


def test_what_installs_the_package_knows_the_same_schema() -> None:
    script = (ROOT / "packaging/scripts/preinst.sh").read_text()

    assert re.findall(r"^KNOWN_SCHEMA=(\d+)$", script, flags=re.MULTILINE) == [str(SCHEMA_VERSION)]


def words() -> dict[str, list[str]]:
    """What may stand in a store of this version, sorted."""
    kinds = (*tags.INPUTS.values(), *tags.CELLS.values(), Event)
    enumerations = {
        hint.__name__: sorted(map(str, hint))
        for hint in _hints(kinds)
        if isinstance(hint, type) and issubclass(hint, StrEnum)
    }
    literals = sorted(
        {str(word) for hint in _hints(kinds) if get_origin(hint) is Literal for word in get_args(hint)}
    )
    return {"inputs": sorted(tags.INPUTS), "cells": sorted(tags.CELLS), "literals": literals, **enumerations}


def _hints(of: Iterable[Any]) -> Iterator[Any]:
    """The types of all fields of these dataclasses, and of the dataclasses in them."""
    seen, left = set(), [*of]
    while left:
        hint = left.pop()
        if hint in seen:
            continue
        seen.add(hint)
        yield hint
        left.extend(get_args(hint) if get_origin(hint) is not Literal else ())
        if dataclasses.is_dataclass(hint):
            left.extend(get_type_hints(hint).values())
