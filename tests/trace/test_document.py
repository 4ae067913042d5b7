"""The files that docs/architecture.md names for the three paths."""

from pathlib import Path

import pytest

from tests.trace.__main__ import Process, not_named
from tests.trace.document import DOCUMENT, EVERY_INPUT, TITLES, NoSection, files_of, named_files
from tests.trace.paths import PATHS

ROOT = Path(__file__).parents[2]


def test_each_path_has_a_section() -> None:
    assert set(TITLES) == set(PATHS)
    assert all(named_files(ROOT, path) for path in PATHS)


@pytest.mark.parametrize("title", [EVERY_INPUT, *TITLES.values()])
def test_each_file_that_the_document_names_exists(title: str) -> None:
    named = list(files_of((ROOT / DOCUMENT).read_text(), title))
    assert named
    assert [file for file in named if not (ROOT / "nodeagent" / file).is_file()] == []


def test_a_row_names_files_of_its_folder() -> None:
    rows = "| `a/b/` | `c.py`, `d.py`: both |\n| `.` | `e.py`: `f` |\n"
    text = f"\n### Path\n\n{rows}\n### Other\n| `a` | `g.py`: g |\n"
    assert list(files_of(text, "Path")) == ["a/b/c.py", "a/b/d.py", "e.py"]


def test_a_missing_section_is_named() -> None:
    with pytest.raises(NoSection, match=r'^docs/architecture\.md: no section "Path"$'):
        list(files_of("", "Path"))


def test_a_file_that_ran_and_is_not_named_is_reported_once() -> None:
    ran = [Process("worker", {"a.py": 1, "b.py": 2}), Process("daemon", {"b.py": 3, "c.py": 4})]
    assert not_named(ran, frozenset({"a.py"})) == ["b.py", "c.py"]
