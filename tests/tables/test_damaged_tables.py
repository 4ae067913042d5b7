"""Whatever a table's text is damaged into, the loader answers with a catalog or with problems."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog

SHIPPED = [path.read_text() for path in sorted((Path(__file__).parents[2] / "fault_codes").glob("*.toml"))]
PIECES = [
    '"',
    "'''",
    '"""',
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    "#",
    "\n",
    "\\",
    "1",
    "nan",
    "true",
    "[]",
    '"*"',
    "9" * 5000,
    "0x" + "f" * 5000,
    "[" * 50,
    ".a" * 300,
    "\ufeff",
    "\0",
]


@st.composite
def damaged_tables(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SHIPPED))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 12)))
        text = text[:begin] + draw(st.sampled_from(["", *PIECES])) + text[end:]
    return text


def rows_or_problems(folder: Path) -> list[str]:
    """Where each row stands or, of refused tables, each problem: one line each."""
    try:
        rows = load_catalog([folder], Settings()).catalog.rows
    except TablesError as refused:
        return str(refused).splitlines()
    return [row.file for row in rows.values()]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(damaged_tables())
def test_damage_yields_a_catalog_or_problems(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t.toml").write_text(text)
        found = rows_or_problems(Path(folder))
        assert found
        assert all(line.startswith(folder) for line in found)
