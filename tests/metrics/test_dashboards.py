"""The dashboards of the package: the files are as the code makes them, and their metrics exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from monitoring.dashboards import texts
from monitoring.panels import NODES

from tests.metrics.reference import DOCUMENT

FOLDER = Path(__file__).parents[2] / "packaging" / "monitoring" / "grafana"
OF_PROMETHEUS_CLIENT = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


@pytest.mark.parametrize("name", texts())
def test_the_file_is_as_the_code_makes_it(name: str) -> None:
    found = (FOLDER / name).read_text(encoding="utf-8")
    assert found == texts()[name], "write it again: PYTHONPATH=packaging python -m monitoring"


def test_there_is_no_other_file() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(texts())


def panels() -> list[dict[str, Any]]:
    return [panel for text in texts().values() for panel in json.loads(text)["panels"]]


def test_each_query_selects_the_nodes_that_are_chosen_and_asks_for_a_metric_that_exists() -> None:
    known = set(re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    known |= OF_PROMETHEUS_CLIENT | {
        "up",
        "ALERTS",
        *(f"{name}_{end}" for name in known for end in ("sum", "count")),
    }
    selectors = [
        found
        for panel in panels()
        for target in panel.get("targets", ())
        for found in re.findall(r"(\w+)\{([^}]*)\}", target["expr"])
    ]
    assert len(selectors) > len(panels())
    assert {metric for metric, _ in selectors} - known == set()
    assert {labels for _, labels in selectors if not labels.startswith(NODES)} == set()


def test_no_two_panels_overlap_and_none_leaves_the_page() -> None:
    for text in texts().values():
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(text)["panels"]:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert taken & cells == set(), panel["title"]
            taken |= cells
