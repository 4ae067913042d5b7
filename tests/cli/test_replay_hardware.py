"""Errors that were put into a real kernel's hardware have the right device, code and level."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Nodeagent

ERRORS: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/fixtures/hardware/linux-6.1.toml").read_text())[
    "error"
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error["made"])
def test_an_error_of_real_hardware_is_the_fault_that_it_is(
    nodeagent: Nodeagent, tmp_path: Path, error: dict[str, Any]
) -> None:
    log = tmp_path / "dmesg.log"
    log.write_text(error["log"].lstrip("\n"))

    ran = nodeagent("replay", log, "-o", "json")

    assert ran.status == 0
    open_faults: dict[tuple[str, str], str] = {}
    notices: set[tuple[str, str]] = set()
    for event in ran.json:
        fault = event["device"], event["code"]
        if event["kind"] == "raised":
            open_faults[fault] = event["condition_level"]
        elif event["kind"] == "cleared":
            del open_faults[fault]
        elif event["kind"] == "notice":
            notices.add(fault)
    faults = sorted([device, code, level] for (device, code), level in open_faults.items())
    assert faults == error["faults"]
    assert sorted(map(list, notices)) == error.get("notices", [])
