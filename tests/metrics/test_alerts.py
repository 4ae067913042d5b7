"""The alerts of the package: what they fire for, that their metrics exist, and a runbook for each."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.metrics.reference import DOCUMENT

ROOT = Path(__file__).parents[2]
RULES = ROOT / "packaging" / "monitoring" / "nodeagent.rules.yml"
CASES = Path(__file__).parent / "alerts_test.yml"
RUNBOOKS = ROOT / "docs" / "runbooks.md"
PARTS = ("Means", "See", "Do", "Call")

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def alerts() -> dict[str, str]:
    """The expression of each."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


@needs_promtool
@pytest.mark.parametrize(
    "command", [("check", "rules", RULES), ("test", "rules", CASES)], ids=["check", "test"]
)
def test_promtool_finds_nothing_wrong(command: tuple[str, str, Path]) -> None:
    ran = subprocess.run(["promtool", *command], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    cases = [
        case
        for test in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    silent = {case["alertname"] for case in cases if not case["exp_alerts"]}
    assert fires == silent == set(alerts())


def test_each_metric_of_an_alert_exists() -> None:
    known = set(re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    used = {name for expression in alerts().values() for name in re.findall(r"nodeagent_\w+", expression)}
    assert used - known == set()


def test_each_alert_has_a_runbook_with_its_four_parts() -> None:
    sections = re.split(r"^## ", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    parts = {
        section.partition("\n")[0]: tuple(re.findall(r"^\*\*(\w+):\*\*", section, re.MULTILINE))
        for section in sections
    }
    assert parts == dict.fromkeys(alerts(), PARTS)
