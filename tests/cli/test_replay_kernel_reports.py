"""Kernel logs that people have put into reports are judged as an engineer of the field would judge them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Nodeagent

REPORTS: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/fixtures/kernel_reports.toml").read_text())[
    "report"
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["name"])
def test_a_report_is_judged_as_it_is_right(
    nodeagent: Nodeagent, tmp_path: Path, report: dict[str, Any]
) -> None:
    log = tmp_path / "kern.log"
    log.write_text(report["log"].lstrip("\n"))

    ran = nodeagent("replay", log, "-o", "json")

    assert ran.status == 0, ran.err
    assert [in_words(event) for event in ran.json] == report["events"]


def in_words(event: dict[str, Any]) -> str:
    told = (event["kind"], event["device"], event["code"] or "-", event["condition_level"] or "-")
    return " ".join((*told, event["verdict"], event["handling"]))
