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
from nodeagent.client import Client
from nodeagent.emulator.node import EmulatedNode
from tests.api.certificates import Authority
from tests.harness.daemon import free_port
from tests.harness.metrics import scraped
from tests.harness.node import Node
from tests.harness.prometheus import Prometheus, Received, alertmanager, prometheus
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        None in (shutil.which("prometheus"), shutil.which("prometheus-alertmanager")),
        reason="prometheus and prometheus-alertmanager are not installed",
    ),
]

RULES: Final = Path(__file__).parents[2] / "packaging" / "monitoring" / "nodeagent.rules.yml"
CHIPS: Final = 16 + 8
HBM: Final = 0x80E18005
ISOLATED: Final = "NodeagentChipIsolated"
RATE_INTERVAL: Final = "10s"
WITHOUT_DATA: Final = {
    "Sources that should observe and do not",  # all do
    "Stores that are not durable",  # it is
    "Most corrected memory errors in the time shown",  # there were none
    "Time of a recovery",  # no job runs
}
"""Panels that are right to be empty on this node."""

OF_THE_MACHINE: Final = {"Losses of a link"}
"""Panels with data where the machine has a network port."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    chips: EmulatedNode
    node: Node
    prometheus: Prometheus
    received: Received

    def order(self, *arguments: str) -> None:
        ran = CliRunner().invoke(main, [*arguments, "--config", str(self.node.configuration)])
        assert ran.exit_code == 0, ran.output


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    address = f"127.0.0.1:{free_port()}"
    authority = Authority(folder)
    own = authority.issue("gpu-17", alternative="DNS:localhost")
    tcp = (
        "[grpc]",
        f'listen = "127.0.0.1:{free_port()}"',
        f'tls_cert = "{own.certificate}"',
        f'tls_key = "{own.key}"',
        f'tls_client_ca = "{authority.certificate}"',
        'roles = {"*" = "reader"}',
    )
    with EmulatedNode.create(folder / "chips", "16xA3+8xH100") as chips:
        sections = (configuration_of(chips), 'poll_interval = "100ms"', "[drivers.link]", *tcp)
        node = Node.within(folder, "\n".join(sections), address)
        with (
            node.daemon() as stream,
            alertmanager(folder / "alertmanager") as received,
            prometheus(folder / "prometheus", [address], RULES, alertmanager=received.port) as running,
        ):
            for _ in range(CHIPS):
                stream.until(" ALLOW ")
            yield Watched(chips=chips, node=node, prometheus=running, received=received)


def test_promtool_finds_nothing_wrong_with_the_page(watched: Watched) -> None:
    page = scraped(watched.node.metrics)
    ran = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    for name in ("temperature_celsius", "nvlink_links_up", "source_up", "device_info"):
        assert f"nodeagent_{name}{{" in page


def test_an_isolated_chip_is_an_alert_with_its_part_and_a_quiesce_resolves_it(
    watched: Watched,
) -> None:
    server, received = watched.prometheus, watched.received
    wait_until(lambda: server.query('nodeagent_device_verdict{kind="chip",verdict="ALLOW"} == 1'), "a scrape")
    assert (server.firing(), server.broken_rules()) == ({}, {})

    watched.chips.raise_code("npu3", HBM, severity=2)
    wait_until(lambda: ISOLATED in received.names("firing"), "the alert")
    (alert,) = [each for each in received.alerts if each.labels["alertname"] == ISOLATED]
    assert alert.labels["device"] == "npu3"
    part = [alert.labels[key] for key in ("product", "serial", "slot", "pci")]
    assert all(part)
    assert all(each in alert.annotations["summary"] for each in part)

    watched.order("quiesce", "--reason", "board swap")
    wait_until(lambda: ISOLATED in received.names("resolved"), "that it is resolved")
    watched.order("resume")
    watched.chips.clear_codes("npu3")
    assert server.broken_rules() == {}


def test_each_query_of_the_dashboards_is_answered(watched: Watched) -> None:
    server = watched.prometheus
    watched.chips.raise_code("npu5", HBM, severity=2)
    watched.order("isolate", "npu7", "--reason", "examination")
    with Client(str(watched.node.socket)) as client:
        client.ack("scheduler", next(iter(client.watch(consumer="scheduler"))).position)
    for expression in (
        'nodeagent_device_verdict{device="npu5",verdict="ISOLATE"}',
        "nodeagent_consumer_lag_events",
        f"rate(process_cpu_seconds_total[{RATE_INTERVAL}])",
        'ALERTS{alertstate="firing"}',
    ):
        wait_until(lambda: server.query(expression), expression, each_s=0.1)  # noqa: B023 # called at once
    queries = {
        (panel["title"], _filled_in(target["expr"]))
        for text in texts().values()
        for panel in json.loads(text)["panels"]
        for target in panel.get("targets", ())
    }
    empty = {title for title, expression in queries if not server.query(expression)}
    assert empty - OF_THE_MACHINE == WITHOUT_DATA
    watched.chips.clear_codes("npu5")


def _filled_in(expression: str) -> str:
    """As Grafana sends it: all nodes are chosen."""
    chosen = re.sub(r"\$(cluster|job|instance)", ".*", expression)
    return chosen.replace("$__rate_interval", RATE_INTERVAL).replace("$__range", RATE_INTERVAL)
