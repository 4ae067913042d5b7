"""``import``: a table made from MindCluster's files decides as they do when they are read in place."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog
from nodeagent.tables.mindcluster.importing import import_files

TESTS = Path(__file__).parents[2]
SHIPPED = TESTS.parent / "fault_codes"

CONTRADICTORY = {
    "faultCode": {
        "NotHandleFaultCodes": ["80e18005", "20001002", "80E18009"],
        "SeparateNPUCodes": ["80E18005", "A2999999", "010001001", "nonsense"],
        "RestartNPUCodes": ["81078603"],
    },
    "SwitchFaultCode": {"ResetFaultCodes": ["[0x08520003,na,L2,na]", "[0x00f1ff09,155914,cpu,na]", "x"]},
    "NodeDConfiguration": {
        "FaultTypeCode": {"NotHandleFaultCodes": ["2C000031"], "SeparateFaultCodes": ["2C000031"]}
    },
    "publicFaultConfiguration": {"publicFaultCode": {"SeparateNPUCodes": ["010001001", "999999999"]}},
    "faultCustomization": {
        "FaultFrequency": [
            {
                "EventId": ["80e18005", "80E1800B", "A2888888"],
                "TimeWindow": 600,
                "Times": 2,
                "FaultHandling": "RestartNPU",
                "ReleaseTimeWindow": 4_000_000_000,
            },
            {"EventId": ["80E18008"], "TimeWindow": 1, "Times": 2, "FaultHandling": "RestartNPU"},
        ],
        "FaultDuration": [
            {
                "EventId": ["81B18603"],
                "FaultTimeout": 0,
                "RecoverTimeout": 61,
                "FaultHandling": "SubHealthFault",
            }
        ],
    },
}


def decisions(catalog: Catalog) -> Any:
    """All of a catalog but the places where it is written."""
    return (
        {key: replace(row, file="") for key, row in catalog.rows.items()},
        [replace(rule, file="") for rule in catalog.frequency],
        [replace(rule, file="") for rule in catalog.duration],
    )


def vendor_files(folder: Path, files: dict[str, Any]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    "files",
    [
        {path.stem: json.loads(path.read_text()) for path in (TESTS / "fixtures/mindcluster").glob("*.json")},
        CONTRADICTORY,
    ],
    ids=["the vendor's", "contradictory"],
)
def test_importing_decides_as_reading_in_place(tmp_path: Path, files: dict[str, Any]) -> None:
    folder = vendor_files(tmp_path / "site", files)
    made = import_files([folder], SHIPPED)
    (tmp_path / "imported").mkdir()
    (tmp_path / "imported/site.toml").write_text(made.text)
    in_place = load_catalog([SHIPPED, folder], Settings())
    imported = load_catalog([SHIPPED, tmp_path / "imported"], Settings())
    assert decisions(imported.catalog) == decisions(in_place.catalog)
    assert set(made.warnings) <= set(in_place.warnings)


def test_files_can_be_named_one_by_one(tmp_path: Path) -> None:
    folder = vendor_files(tmp_path / "site", CONTRADICTORY)
    made = import_files([folder / "SwitchFaultCode.json"], SHIPPED)
    assert (made.codes, made.rules) == (2, 0)


def refusal(*paths: Path) -> str:
    with pytest.raises(TablesError) as refused:
        import_files(paths, SHIPPED)
    return str(refused.value)


def test_a_folder_without_json_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).splitlines()[0] == f"{tmp_path}: holds no JSON file"


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    first, second = (vendor_files(tmp_path / name, CONTRADICTORY) for name in "ab")
    files = [folder / "SwitchFaultCode.json" for folder in (first, second)]
    assert refusal(*files) == "SwitchFaultCode.json: named twice; import one at a time"


def test_files_that_say_nothing_are_refused(tmp_path: Path) -> None:
    folder = vendor_files(tmp_path / "site", {"faultCode": {}})
    assert refusal(folder) == f"{folder}: holds nothing that could be imported"
