"""docs/attributes.md is the contract of a device's attributes: it has what is said, and nothing else.

What the drivers really say is held against it at the end of each test that runs a driver's worker
(``tests/daemon/staged.py``).
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from nodeagent import wire
from nodeagent.config.load import load_config
from nodeagent.core.model import Device, Kind
from nodeagent.core.model.traits import NAMED_BY_DRIVER, NO_EVENTS
from nodeagent.core.state import registry
from nodeagent.daemon.recovery import _node
from nodeagent.daemon.sources import inventory
from nodeagent.drivers.ascend.reset_groups import ProductSeries
from nodeagent.drivers.nvidia import identity
from tests.attributes import DOCUMENT, OF, ROW, TYPES, broken, contract, words_of
from tests.documents import ROOT

SOURCES: Final = [
    path
    for path in (ROOT / "nodeagent").rglob("*.py")
    if "pb" not in path.parts and "emulator" not in path.parts
]
NAMED: Final = re.compile(r"""attributes(?:\.get\(|\[)["'](\w+)["']""")


def texts() -> dict[Path, str]:
    return {path: path.read_text() for path in SOURCES}


def test_every_row_has_a_type_and_is_about_devices_that_there_are() -> None:
    table = DOCUMENT.read_text().partition("| type | is |")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == len(list(ROW.finditer(table)))
    assert {of for of, _ in contract()} == set(OF.values())


def test_every_key_that_the_code_names_has_a_row() -> None:
    named = {key for text in texts().values() for key in NAMED.findall(text)}
    assert named - {key for _, key in contract()} == set()
    assert len(named) > 10


def test_every_row_is_of_a_key_that_the_code_has() -> None:
    code = "\n".join(texts().values())
    assert [key for _, key in contract() if f'"{key}"' not in code] == []


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("series", ProductSeries),
        ("mig", identity._MIG_MODES.values()),
        ("virtualization", identity._VIRTUALIZATION.values()),
        ("events", [NO_EVENTS]),
        ("recovery_action", [NAMED_BY_DRIVER]),
    ],
)
def test_the_words_of_a_row_are_those_that_the_code_has(key: str, words: Iterable[str]) -> None:
    (row,) = (row for row in ROW.finditer(DOCUMENT.read_text()) if row["key"] == key)
    assert sorted(words_of(row["type"])) == sorted(words)


def test_what_the_daemon_adds_itself_has_rows() -> None:
    gpu = wire.Device(device="gpu0", kind=Kind.CHIP, vendor="nvidia", attributes={"pci": "0000:3b:00.0"})
    chip = Device(
        id="GPU-0", name="gpu0", kind=Kind.CHIP, vendor="nvidia", source="nvidia", attributes={}, seen=True
    )
    (let_alone,) = inventory.marked([gpu], ["gpu0"])
    added: list[tuple[Kind, str, Mapping[str, str]]] = [
        (each.kind, each.vendor, each.attributes)
        for each in (let_alone, registry.new_part(chip, "gi5"), _node(load_config(None, {})))
    ]
    assert [broken(*each) for each in added] == [[], [], []]
    assert [sorted(attributes) for _, _, attributes in added] == [
        ["excluded", "no_reset", "pci"],
        ["part_of"],
        ["hostname"],
    ]


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        ("pci", "0000:3B:00.0", "pci of GPU: '0000:3B:00.0' is not of its type in attributes.md"),
        ("minor", "", "minor of GPU: '' is not of its type in attributes.md"),
        ("mig", "on", "mig of GPU: 'on' is not of its type in attributes.md"),
        ("colour", "red", "colour of GPU: it has no row in attributes.md"),
    ],
)
def test_what_is_said_otherwise_is_found(key: str, value: str, wrong: str) -> None:
    assert broken(Kind.CHIP, "nvidia", {"pci": "0000:3b:00.0", "mig": "2", key: value}) == [wrong]


def test_the_types_that_are_explained_are_those_that_are_checked() -> None:
    explained = DOCUMENT.read_text().partition("| type | is |")[2]
    cells = {
        name.strip()
        for line in re.findall(r"^\| ([^|`]+) \|", explained, re.MULTILINE)
        for name in line.split(",")
    }
    assert cells - {"---"} == {*TYPES, "choice"}
