"""No name that a user chooses makes a line of the kernel the line of a fault, in any line that quotes one."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog import Catalog, Settings
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.drivers.kmsg.quoting import begins_with_a_long_name
from nodeagent.tables.load import load_catalog
from nodeagent.worker import protocol
from tests.forging.automata import Language, anything, common_line, of_regex
from tests.forging.templates import Template, templates

REPOSITORY = Path(__file__).parents[2]
SAMPLES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_samples.toml").read_text())
TEMPLATES = templates()
NAME_CHARS = 15


@cache
def catalog() -> Catalog:
    return load_catalog([REPOSITORY / "fault_codes"], Settings()).catalog


@cache
def languages() -> dict[str, Language]:
    return {pattern.id: of_regex(pattern.regex) for pattern in catalog().patterns}


@cache
def fragment_takers() -> frozenset[str]:
    """The patterns of the driver that marks all of its lines as continuations."""
    return frozenset(pattern.id for pattern in catalog().patterns if pattern.continuation)


def samples() -> list[str]:
    return [text for sort in ("of_the_field", "of_the_formats") for text, *_ in SAMPLES[sort]]


@cache
def faults() -> tuple[str, ...]:
    """Every sample of a fault, and the shortest line that each pattern takes."""
    shortest = [common_line(anything(), language) or "" for language in languages().values()]
    return tuple(dict.fromkeys((*samples(), *shortest)))


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(protocol.as_told(catalog().patterns))


def named(template: Template) -> str:
    return re.sub(r"\W+", "-", template.text)[:60]


def names(fault: str) -> Iterator[tuple[str, str]]:
    """Pairs of names that say a fault: all of it in one, or what a program's name holds and then the rest."""
    for first in (fault, f"x\n{fault}"):
        yield first, fault
        yield first, f"\n{fault[NAME_CHARS:]}"


@pytest.mark.parametrize("template", [each for each in TEMPLATES if not each.long], ids=named)
def test_no_name_that_there_is_makes_it_a_fault(template: Template) -> None:
    said = template.language()
    may_take = fragment_takers() if template.continued else languages().keys()
    for pattern in sorted(may_take - template.about):
        forged = common_line(said, languages()[pattern])
        assert forged is None, f"{pattern} takes what {template.source} may say: {forged!r}"


@pytest.mark.parametrize("template", TEMPLATES, ids=named)
def test_the_words_of_no_fault_make_it_one(matcher: Matcher, template: Template) -> None:
    lines = sorted({template.filled(*chosen) for fault in faults() for chosen in names(fault)})
    continued = range(len(lines)) if template.continued else ()
    found = {
        match.pattern: line
        for line, match in zip(lines, matcher.match(lines, continued), strict=True)
        if match
    }
    assert found.keys() <= template.about, found


@pytest.mark.parametrize("template", [each for each in TEMPLATES if each.long], ids=named)
def test_a_line_that_begins_with_a_long_name_is_known_by_what_stands_behind_it(template: Template) -> None:
    assert all(begins_with_a_long_name(template.filled(fault, fault)) for fault in faults())
    assert not any(begins_with_a_long_name(fault) for fault in faults())


def test_a_line_that_continues_another_is_taken_only_of_a_driver_that_writes_so(matcher: Matcher) -> None:
    """Its beginning may be the name of a control group: one that was interrupted twice says nothing else."""
    lines = samples()
    found = matcher.match(lines, continued=range(len(lines)))
    assert {match.pattern for match in found if match} == fragment_takers()
    assert all(pattern.startswith("NV_") for pattern in fragment_takers())
    assert None not in matcher.match(lines)
