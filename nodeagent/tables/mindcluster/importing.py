"""Makes a table of this project's own from MindCluster's files: it decides as they do when read in place.

It writes no file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.model import Kind
from nodeagent.tables.entry import Entry
from nodeagent.tables.export import to_toml
from nodeagent.tables.layers import Merged, merge, read_layer
from nodeagent.tables.load import TablesError
from nodeagent.tables.mindcluster.files import lay_over, read_vendor_files, warn_of_rules_left
from nodeagent.toml.problem import Problem, Problems

_HEAD = "# Made by nodeagent tables import from: {files}\n"


@dataclass(frozen=True, slots=True)
class Imported:
    """The TOML text with the number of codes and rules in it, and the warnings about the files."""

    text: str
    codes: int
    rules: int
    warnings: tuple[str, ...]


def import_files(paths: Sequence[Path], shipped: Path) -> Imported:
    """``paths`` are MindCluster's files or folders of them; what they leave open about a code is as in
    ``shipped``.

    Raises TablesError where a file cannot be read, or nothing can be taken from any.
    """
    problems, warnings = Problems(), list[str]()
    base = _read_base(shipped, problems)
    files = [file for path in paths for file in _files(path, problems)]
    for name in sorted({file.name for file in files if sum(file.name == other.name for other in files) > 1}):
        problems.add(Problem(file=name, line=None, key="", reason="named twice; import one at a time"))
    layer = read_vendor_files(files, problems.add, warnings.append)
    if not problems and not layer.levels and not layer.rules:
        named = ", ".join(map(str, paths))
        problems.add(Problem(file=named, line=None, key="", reason="holds nothing that could be imported"))
    if problems:
        raise TablesError(problems.found())
    rows = dict(base.rows)
    lay_over(rows, layer, base.decoding, warnings.append)
    warn_of_rules_left(base.rules, layer, warnings.append)
    taken = [row for key in layer.levels if (row := _taken(rows[key])) is not None]
    taken.sort(key=lambda row: (list(Kind).index(row.kind), row.code))
    rules = [entry.value for entry in layer.rules.values() if entry.value is not None]
    head = _HEAD.format(files=", ".join(file.name for file in files))
    return Imported(head + to_toml(taken, rules), len(taken), len(rules), tuple(warnings))


def _read_base(shipped: Path, problems: Problems) -> Merged:
    """Its own warnings appear when it is checked."""
    return merge([read_layer(shipped, problems.add, _be_silent)], problems.add, _be_silent)


def _be_silent(_warning: str) -> None:
    return


def _taken(entry: Entry[Row]) -> Row | None:
    """None for a code that kept the level of another kind of part."""
    return None if entry.strict else entry.value


def _files(path: Path, problems: Problems) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
    if not files:
        problems.add(Problem(file=str(path), line=None, key="", reason="holds no JSON file"))
    return files
