"""The real daemon with NPUs and GPUs, scraped by a real Prometheus: its page, alerts and dashboards."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from monitoring.dashboards import texts

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.cli.main import main
from nodeagent.emulator.node import EmulatedNode
from tests.harness.daemon import free_port
from tests.harness.metrics import scraped
from tests.harness.node import Node
from tests.harness.prometheus import Prometheus, prometheus
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed"),
]

RULES: Final = Path(__file__).parents[2] / "packaging" / "monitoring" / "nodeagent.rules.yml"
CHIPS: Final = 16 + 8
HBM: Final = 0x80E18005
SECTIONS: Final = """
poll_interval = "100ms"
[drivers.link]
[reset]
mode = "off"
"""

WITHOUT_DATA: Final[set[str]] = set()


@dataclass(frozen=True, kw_only=True)
class Watched:
    chips: EmulatedNode
    node: Node
    prometheus: Prometheus

    def order(self, *arguments: str) -> None:
        ran = CliRunner().invoke(main, [*arguments, "--config", str(self.node.configuration)])
        assert ran.exit_code == 0, ran.output


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    address = f"127.0.0.1:{free_port()}"
    with EmulatedNode.create(folder / "chips", "16xA3+8xH100") as chips:
        node = Node.within(folder, configuration_of(chips) + SECTIONS, address)
        with node.daemon() as stream, prometheus(folder / "prometheus", [address], RULES) as running:
            for _ in range(CHIPS):
                stream.until(" ALLOW ")
            yield Watched(chips=chips, node=node, prometheus=running)


def test_promtool_finds_nothing_wrong_with_the_page(watched: Watched) -> None:
    page = scraped(watched.node.metrics)
    ran = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    for name in ("temperature_celsius", "nvlink_links_up", "source_up", "device_info"):
        assert f"nodeagent_{name}{{" in page


def test_a_chip_that_is_isolated_is_an_alert_with_its_part_and_a_quiesce_ends_it(watched: Watched) -> None:
    server = watched.prometheus
    wait_until(lambda: server.query('nodeagent_device_verdict{kind="chip",verdict="ALLOW"} == 1'), "a scrape")
    assert (server.firing(), server.broken_rules()) == ({}, {})

    watched.chips.raise_code("npu3", HBM, severity=2)
    firing = wait_until(lambda: server.firing().get("NodeagentChipIsolated"), "the alert")
    assert [(alert["device"], alert["verdict"]) for alert in firing] == [("npu3", "ISOLATE")]
    assert all(firing[0][part] for part in ("product", "serial", "pci"))

    watched.order("quiesce", "--reason", "board swap")
    wait_until(lambda: not server.firing(), "silence")
    watched.order("resume")
    watched.chips.clear_codes("npu3")
    assert server.broken_rules() == {}


def test_each_query_of_the_dashboards_is_answered(watched: Watched) -> None:
    """``WITHOUT_DATA`` are those of what this node does not have."""
    server = watched.prometheus
    watched.chips.raise_code("npu5", HBM, severity=2)
    wait_until(lambda: server.query('nodeagent_device_verdict{device="npu5",verdict="ISOLATE"}'), "a scrape")
    queries = {
        (panel["title"], _filled_in(target["expr"]))
        for text in texts().values()
        for panel in json.loads(text)["panels"]
        for target in panel.get("targets", ())
    }
    empty = {title for title, expression in queries if not server.query(expression)}
    assert empty == WITHOUT_DATA
    watched.chips.clear_codes("npu5")


def _filled_in(expression: str) -> str:
    """As Grafana sends it: all nodes are chosen, and a rate is of the last seconds."""
    return (
        re.sub(r"\$(cluster|job|instance)", ".*", expression)
        .replace("$__rate_interval", "10s")
        .replace("$__range", "1h")
    )
