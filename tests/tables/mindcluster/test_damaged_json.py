"""Whatever MindCluster's files are damaged into, the loader answers with a catalog or with problems."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog

FIXTURES = Path(__file__).parents[2] / "fixtures/mindcluster"
FILES = {path.name: path.read_text() for path in FIXTURES.iterdir()}
ROW = 'kind = "chip"\n[codes.80E18005]\nname = "HBM"\nlevel = "RestartNPU"\n'
PIECES = [
    '"',
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\\",
    "\\u",
    "\\ud800",
    "null",
    "NaN",
    "1e999",
    "-1",
    "true",
    "é",
    "9" * 5000,
    "[" * 50,
    "\ufeff",
    "\0",
]
RULE_KEYS = ["FaultFrequency", "FaultDuration", "GraceTolerance", "EventId", "Times", "FaultHandling"]
LIST_KEYS = ["FaultTypeCode", "publicFaultCode", "SeparateNPUCodes", "SeparateFaultCodes"]
KEYS = st.sampled_from([*RULE_KEYS, *LIST_KEYS]) | st.text(max_size=4)
CODES = st.sampled_from(["80E18005", "80e18005", "020001002", "[0x08520003,na,L2,na]", "81078603", "*", "A*"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | CODES | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@st.composite
def damaged_files(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(st.sampled_from(sorted(FILES)))
    text = FILES[name]
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 12)))
        text = text[:begin] + draw(st.sampled_from(["", *PIECES])) + text[end:]
    return name, text


def problems_of(name: str, text: str) -> list[str]:
    """The catalog's rows by where they stand, or each problem; warnings can be written in any case."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t.toml").write_text(ROW)
        (Path(folder) / name).write_text(text)
        try:
            loaded = load_catalog([Path(folder)], Settings())
        except TablesError as refused:
            lines = str(refused).splitlines()
        else:
            lines = [row.file for row in loaded.catalog.rows.values()]
            lines += [warning.encode().decode() for warning in loaded.warnings]
        assert all(line.startswith(folder) for line in lines)
        return lines


@settings(max_examples=200, deadline=None, derandomize=True)
@given(damaged_files())
def test_a_damaged_file_yields_a_catalog_or_problems(file: tuple[str, str]) -> None:
    assert problems_of(*file)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(FILES)), VALUES)
def test_json_of_any_shape_yields_a_catalog_or_problems(name: str, value: Any) -> None:
    assert problems_of(name, json.dumps(value))
