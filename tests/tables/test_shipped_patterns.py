"""The shipped kernel-log patterns against lines from the field: every form is taken, near misses are not."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog import Catalog, Pattern, Settings
from nodeagent.tables.load import load_catalog

REPOSITORY = Path(__file__).parents[2]
LINES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_lines.toml").read_text())
PREFIXES = (
    "",
    "[6781741.548779] ",
    "[Sun Jan  5 20:25:34 2025] ",
    "[  228.600423][ T1234] ",
    "<3>",
    "Oct 16 20:47:19 node-7 kernel: ",
    "2025-10-16T20:47:19+0200 node-7 kernel: ",
    "kernel: ",
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog([REPOSITORY / "fault_codes"], Settings()).catalog


def matching(catalog: Catalog, text: str) -> list[tuple[Pattern, re.Match[str]]]:
    return [(pattern, found) for pattern in catalog.patterns if (found := re.search(pattern.regex, text))]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("line", LINES["line"], ids=lambda line: line["text"][:50])
def test_a_line_is_taken_by_its_pattern_alone_whatever_stands_before_it(
    catalog: Catalog, line: dict[str, Any], prefix: str
) -> None:
    ((pattern, found),) = matching(catalog, prefix + line["text"])
    groups = {key: value for key, value in found.groupdict().items() if key in line["groups"]}
    assert (pattern.id, pattern.code.format(**found.groupdict()), groups) == (
        line["pattern"],
        line["code"],
        line["groups"],
    )


@pytest.mark.parametrize("text", LINES["foreign"])
def test_a_near_miss_is_not_taken(catalog: Catalog, text: str) -> None:
    assert [pattern.id for pattern, _ in matching(catalog, text)] == []


def test_every_shipped_pattern_has_a_line_from_the_field(catalog: Catalog) -> None:
    assert {pattern.id for pattern in catalog.patterns} == {line["pattern"] for line in LINES["line"]}


def test_every_code_of_the_lines_has_a_row_or_a_family(catalog: Catalog) -> None:
    rows = {line["code"]: catalog.row(line["code"]) for line in LINES["line"]}
    assert [code for code, row in rows.items() if row is None] == []
