"""One word for one thing: class names of the product, and the table of words in docs/architecture.md."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import nodeagent.core.model as model
from nodeagent.core.model import Assertion, EventKind, HoldKind
from tests.documents import ROOT

PACKAGE: Final = ROOT / "nodeagent"
GENERATED: Final = PACKAGE / "messages" / "pb"

ONE_THING_IN_SEVERAL_PLACES: Final[Mapping[str, frozenset[str]]] = {
    "what the core or the store holds, and the value in which a client gets it": frozenset(
        {
            *("Condition", "Consumer", "Event", "Hold", "Holder", "Job", "JobNote", "JobPolicy", "Promotion"),
            *("Reason", "Reset", "Source"),
        }
    ),
    "what the core holds, and the line between worker and daemon that carries it": frozenset(
        {"Baseline", "Cursor", "Device", "Pattern", "Signal"}
    ),
    "the worker's line, and the exception of a driver that becomes it": frozenset({"Unavailable"}),
}
"""Why some names may be defined more than once."""


@cache
def defined() -> Mapping[str, tuple[str, ...]]:
    """The modules that define a public class, by its name."""
    found = defaultdict[str, list[str]](list)
    for source in sorted(PACKAGE.rglob("*.py")):
        if not source.is_relative_to(GENERATED):
            for name in public_classes(source):
                found[name].append(str(source.relative_to(PACKAGE)))
    return {name: tuple(modules) for name, modules in found.items()}


def public_classes(source: Path) -> Iterator[str]:
    for node in ast.parse(source.read_text(), str(source)).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_public_class_name_is_defined_twice_without_need() -> None:
    needed = frozenset[str]().union(*ONE_THING_IN_SEVERAL_PLACES.values())
    several = {name: modules for name, modules in defined().items() if len(modules) > 1}

    assert {name: modules for name, modules in several.items() if name not in needed} == {}


def rows() -> dict[str, str]:
    """The meaning by the words of the first column; a row may explain several, separated by commas."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("\n## Words\n")[2].partition("\n## ")[0]
    found = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", table, flags=re.MULTILINE))
    return {word: meaning for word, meaning in found.items() if word not in ("word", "---")}


def test_each_word_is_explained_once() -> None:
    words = [word for row in rows() for word in row.split(", ")]

    assert len(words) == len(set(words)) > 20


@pytest.mark.parametrize(
    "word", ["signal", "condition", "promotion", "hold", "event", "action", "level", "verdict", "handling"]
)
def test_a_word_that_names_a_value_of_the_core_is_a_class_of_its_model(word: str) -> None:
    assert word in {each for row in rows() for each in row.split(", ")}
    assert isinstance(getattr(model, word.title()), type)


def test_the_row_of_a_signal_lists_what_one_can_assert() -> None:
    assert re.findall(r"`(\w+)`", rows()["signal"]) == [each.value for each in Assertion]


def test_the_row_of_a_hold_lists_its_kinds() -> None:
    kinds = {
        HoldKind.ISOLATION: "an isolation",
        HoldKind.RESET_PENDING: "a pending reset",
        HoldKind.QUIESCE: "a quiesce",
    }

    assert set(kinds) == set(HoldKind)
    assert [words for words in kinds.values() if words not in rows()["hold"]] == []


def test_a_notice_is_a_kind_of_event() -> None:
    assert rows()["notice"].startswith("an event ")
    assert "notice" in {kind.value for kind in EventKind}
