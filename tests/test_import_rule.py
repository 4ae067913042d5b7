"""Rules of imports that import-linter cannot express: what the core may import, and what a test may not."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "nodeagent/core"
ALLOWED_OF_THE_STANDARD_LIBRARY = {"bisect", "collections", "dataclasses", "enum", "heapq", "typing"}
VOCABULARY = (
    "nodeagent.core.catalog.catalog",
    "nodeagent.core.catalog.codes",
    "nodeagent.core.catalog.settings",
    "nodeagent.core.model",
    "nodeagent.core.catalog.catalog",
)


def imported_by(source: Path) -> Iterator[str]:
    """Every module that the file names in an import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "nodeagent.core":
            yield from (f"nodeagent.core.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def test_core_imports_only_a_handful_of_pure_modules_and_itself() -> None:
    foreign = {
        f"{source.relative_to(ROOT)}: {module}"
        for source in CORE.rglob("*.py")
        for module in imported_by(source)
        if module.split(".")[0] not in ALLOWED_OF_THE_STANDARD_LIBRARY
        and not module.startswith("nodeagent.core.")
    }

    assert foreign == set()


@pytest.mark.parametrize("module", VOCABULARY)
def test_vocabulary_of_the_core_knows_nothing_of_its_rules(module: str) -> None:
    place = ROOT / module.replace(".", "/")
    sources = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    of_core = {name for source in sources for name in imported_by(source) if name.startswith("nodeagent.")}

    assert {name for name in of_core if not name.startswith(VOCABULARY)} == set()


def test_every_part_of_the_package_has_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = " ".join(next(contract["layers"] for contract in contracts if contract["type"] == "layers"))
    parts = {path.stem for path in (ROOT / "nodeagent").iterdir() if not path.name.startswith("__")}

    assert {part for part in parts if f"nodeagent.{part}" not in layers} == set()


def test_folders_that_import_each_other_are_those_of_the_document_and_none_of_the_core() -> None:
    package = ROOT / "nodeagent"
    arrows = {
        (source.parent, folder)
        for source in package.rglob("*.py")
        for name in imported_by(source)
        if (folder := folder_of(name)) is not None and folder != source.parent
    }
    both = {
        f"{one.relative_to(package)}, {other.relative_to(package)}"
        for one, other in arrows
        if (other, one) in arrows and str(one) < str(other)
    }
    section = (ROOT / "docs/architecture.md").read_text().split("### Folders that import each other")[1]
    rows = re.findall(r"^\| (`.*?) \|", section.split("\n## ")[0], flags=re.MULTILINE)

    assert both == {pair.replace("`", "") for row in rows for pair in row.split("; ")}
    assert not any(pair.startswith("core") for pair in both)


def folder_of(module: str) -> Path | None:
    """The folder of a module of the package."""
    place = ROOT / module.replace(".", "/")
    if place.is_dir():
        return place
    return place.parent if place.with_suffix(".py").is_file() else None


TESTS = ROOT / "tests"


def test_no_test_file_imports_from_another() -> None:
    """What several of them need has a module of its own: in their folder, or in tests/harness."""
    found = {
        f"{source.relative_to(ROOT)}: {module}"
        for source in TESTS.rglob("*.py")
        for module in imported_test_files(source)
    }

    assert found == set()


def imported_test_files(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names if alias.name.startswith("tests.")]
        else:
            continue
        yield from (name for name in named if ".test_" in name)
