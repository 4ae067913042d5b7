"""The alerts of the package: what they fire for, that their metrics exist, and a runbook for each."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.metrics.alert_cases import CASES, AlertCase, Labels, of
from tests.metrics.reference import DOCUMENT

ROOT = Path(__file__).parents[2]
RULES = ROOT / "packaging" / "monitoring" / "nodeagent.rules.yml"
RUNBOOKS = ROOT / "docs" / "runbooks.md"
PARTS = ("Means", "See", "Do", "Call")
SKEW: Final = "NodeagentVersionSkew"
"""It is about several nodes, and has cases of its own here."""

FIRST: Final = {"instance": "n1", "job": "nodeagent", "cluster": "a", "rack": "r1"}
OF_THE_SAME_NAME: Final = {**FIRST, "cluster": "b"}
QUIESCED: Final = {**FIRST, "instance": "n2"}

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def alerts() -> dict[str, str]:
    """The expression of each."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"] if "alert" in rule}


def series(of_metric: tuple[str, Labels], node: Mapping[str, str], values: str) -> dict[str, str]:
    """As promtool reads it."""
    metric, labels = of_metric
    written = ",".join(f'{key}="{value}"' for key, value in (*labels, *node.items()))
    return {"series": f"{metric}{{{written}}}", "values": values}


def expected(case: AlertCase, node: Mapping[str, str]) -> dict[str, Any]:
    return {
        "exp_labels": {"severity": case.severity, **case.labels, **node},
        "exp_annotations": {
            "summary": f"{node['instance']}{case.summary}",
            "runbook": f"docs/runbooks.md#{case.alert.lower()}",
        },
    }


def played(case: AlertCase) -> dict[str, Any]:
    """Where the daemon of a node is down, Prometheus knows from before whether the node was quiesced."""
    quiesced = "{0} {0} stale" if case.outlasts else "{0}x2000"
    given = [
        series(metric, node, values)
        for node in (FIRST, OF_THE_SAME_NAME, QUIESCED)
        for metric, values in {
            of("up"): "1x2000",
            of("nodeagent_quiesced"): quiesced.format(int(node is QUIESCED)),
            **case.series,
        }.items()
    ]
    return {
        "name": case.alert,
        "interval": case.every,
        "input_series": given,
        "alert_rule_test": [
            {"eval_time": case.silent_at, "alertname": case.alert, "exp_alerts": []},
            {
                "eval_time": case.fires_at,
                "alertname": case.alert,
                "exp_alerts": [expected(case, node) for node in (FIRST, OF_THE_SAME_NAME)],
            },
        ],
    }


def skewed() -> Iterator[dict[str, Any]]:
    """Two clusters; in the second the node of another version is quiesced."""
    nodes = (
        ("n1", "a", "0.3.0", 0),
        ("n2", "a", "0.2.0", 0),
        ("n3", "b", "0.3.0", 0),
        ("n4", "b", "0.2.0", 1),
    )
    given = []
    for instance, cluster, version, quiesced in nodes:
        node = {"instance": instance, "job": "nodeagent", "cluster": cluster}
        given.append(series(of("nodeagent_build_info", version=version, node=instance), node, "1x170"))
        given.append(series(of("nodeagent_quiesced"), node, f"{quiesced}x170"))
    fires = {
        "exp_labels": {"severity": "ticket", "cluster": "a", "job": "nodeagent"},
        "exp_annotations": {
            "summary": "2 versions of nodeagent run for a day",
            "runbook": "docs/runbooks.md#nodeagentversionskew",
        },
    }
    yield {
        "name": SKEW,
        "interval": "10m",
        "input_series": given,
        "alert_rule_test": [
            {"eval_time": "20h", "alertname": SKEW, "exp_alerts": []},
            {"eval_time": "26h", "alertname": SKEW, "exp_alerts": [fires]},
        ],
    }


def promtool(*arguments: str | Path) -> None:
    ran = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_promtool
def test_the_rules_are_right_in_their_form() -> None:
    promtool("check", "rules", RULES)


@needs_promtool
@pytest.mark.parametrize(
    ("interval", "cases"),
    [("15s", [*map(played, CASES)]), ("10m", [*skewed()])],
    ids=["of-a-node", "of-a-cluster"],
)
def test_each_alert_fires_for_its_case_alone_and_never_on_a_node_that_is_quiesced(
    tmp_path: Path, interval: str, cases: list[dict[str, Any]]
) -> None:
    written = tmp_path / "alerts.yml"
    written.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": interval, "tests": cases})
    )
    promtool("test", "rules", written)


def test_each_alert_has_a_case() -> None:
    assert sorted(alerts()) == sorted([SKEW, *(case.alert for case in CASES)])


def test_each_metric_of_an_alert_exists() -> None:
    known = set(re.findall(r"^\| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    used = {
        name
        for expression in alerts().values()
        for name in re.findall(r"(?<![:\w])nodeagent_\w+", expression)
    }
    assert used - known == set()


def test_each_alert_has_a_runbook_with_its_four_parts() -> None:
    sections = re.split(r"^## ", RUNBOOKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    parts = {
        section.partition("\n")[0]: tuple(re.findall(r"^\*\*(\w+):\*\*", section, re.MULTILINE))
        for section in sections
    }
    assert parts == dict.fromkeys(alerts(), PARTS)
