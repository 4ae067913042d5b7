"""The shipped kernel-log patterns against lines from the field: every form is taken, near misses are not."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog import Catalog, Settings
from nodeagent.core.model import Assertion
from nodeagent.drivers.kmsg.match import Match, Matcher
from nodeagent.tables.load import load_catalog
from nodeagent.worker.protocol import Pattern

REPOSITORY = Path(__file__).parents[2]
LINES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_lines.toml").read_text())
SAMPLES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_samples.toml").read_text())
PREFIXES = (
    "",
    "> ",
    "[6781741.548779] ",
    "[Sun Jan  5 20:25:34 2025] ",
    "[  228.600423][ T1234] ",
    "<3>",
    "<4>[  201.654822] ",
    "Oct 16 20:47:19 node-7 kernel: ",
    "2025-10-16T20:47:19+0200 node-7 kernel: ",
    "kern  :warn  : 2025-01-21T04:41:44,285060+00:00 ",
    "kernel: ",
    "[EVENT] KERNEL(4128,sklogd):2024-01-22-05:03:02.259.649 [klogd.c:253][2572550.901383] ",
)
FAMILIES_OF_THE_DATA = 66
OTHER_FORMS = 29
"""Patterns for one more form of a family, or for its recovery, beside the family's own."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog([REPOSITORY / "fault_codes"], Settings()).catalog


@pytest.fixture(scope="module")
def matcher(catalog: Catalog) -> Matcher:
    return Matcher(
        [
            Pattern(id=p.id, code=p.code, regex=p.regex, device=p.device, assertion=p.assertion)
            for p in catalog.patterns
        ]
    )


def only(matcher: Matcher, text: str) -> Match:
    (found,) = matcher.match([text])
    assert found is not None, f"taken by nothing: {text}"
    return found


@pytest.mark.parametrize("line", LINES["line"], ids=lambda line: line["text"][:50])
def test_a_line_is_taken_apart_whatever_stands_before_it(matcher: Matcher, line: dict[str, Any]) -> None:
    for prefix in PREFIXES:
        found = only(matcher, prefix + line["text"])
        groups = {key: value for key, value in found.groups.items() if key in line["groups"]}
        assert (found.pattern, found.code, groups) == (line["pattern"], line["code"], line["groups"])


@pytest.mark.parametrize(
    ("text", "pattern", "code", "device"), SAMPLES["of_the_field"] + SAMPLES["of_the_formats"]
)
def test_a_line_has_its_code_and_device_whatever_stands_before_it(
    matcher: Matcher, text: str, pattern: str, code: str, device: str
) -> None:
    for prefix in PREFIXES:
        found = only(matcher, prefix + text)
        assert (found.pattern, found.code, found.device) == (pattern, code, device)


@pytest.mark.parametrize(("text", "pattern"), SAMPLES["near"])
def test_a_line_of_another_family_is_left_to_it(matcher: Matcher, text: str, pattern: str) -> None:
    (found,) = matcher.match([text])
    assert found is None or found.pattern != pattern or found.assertion is Assertion.RECOVER


@pytest.mark.parametrize("text", SAMPLES["nothing"])
def test_a_line_without_a_fault_is_taken_by_nothing(matcher: Matcher, text: str) -> None:
    assert matcher.match([text]) == [None]


def test_every_shipped_pattern_takes_some_line(catalog: Catalog) -> None:
    taken = {pattern for sort in ("of_the_field", "of_the_formats") for _, pattern, *_ in SAMPLES[sort]}
    taken |= {line["pattern"] for line in LINES["line"]}
    assert {pattern.id for pattern in catalog.patterns} == taken


def test_every_line_has_a_row_or_a_family(catalog: Catalog) -> None:
    codes = {code for sort in ("of_the_field", "of_the_formats") for _, _, code, _ in SAMPLES[sort]}
    assert [code for code in codes if catalog.row(code) is None] == []


def test_patterns_are_one_for_each_known_family_and_some_for_its_other_forms(catalog: Catalog) -> None:
    assert len(catalog.patterns) == FAMILIES_OF_THE_DATA + OTHER_FORMS
