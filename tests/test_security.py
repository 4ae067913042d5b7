"""SECURITY.md names a test for each statement: it is there."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.documents import ROOT

SECURITY: Final = ROOT / "SECURITY.md"
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_test_that_is_named_exists() -> None:
    named = NAMED.findall(SECURITY.read_text())
    missing = [f"{path}::{name}" for path, name in named if name not in _tests(ROOT / path)]
    assert named
    assert missing == []


def test_each_statement_names_a_test() -> None:
    """One without a test has a dash in its place, which a reader sees."""
    model = (
        SECURITY.read_text().partition("### Who can reach what")[2].partition("### Outside of the model")[0]
    )
    rows = [line for line in model.splitlines() if line.startswith("| ") and not line.startswith("| | test")]
    assert rows
    assert [row for row in rows if not NAMED.search(row) and not row.endswith("| - |")] == []


def _tests(path: Path) -> set[str]:
    if not path.exists():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, functions)}
