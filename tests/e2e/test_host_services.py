"""Services that accelerators need, watched by the package from its sandbox, beside a real systemd."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.host.node_tree import NodeTree
from tests.e2e.machine import KMSG, Machine, booted, until, write
from tests.e2e.tree import laid_over, switch

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

UNIT = "nodeagent.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
FABRIC_MANAGER_DOWN = "NV_FABRIC_MANAGER_DOWN"
MARKER_DOWN = "SERVICE_DOWN.marker"
"""Of a service that never runs: once it is missed, all services were looked at."""

ONLY_THE_MARKER = "services watched: marker.service"

DROP_IN = f"""
[Service]
Environment=NODEAGENT_CONFIG=/etc/nodeagent-test.toml
DeviceAllow={KMSG} r
"""
SERVICE = f"""
[Unit]
Before={UNIT}

[Service]
ExecStart=/bin/sleep infinity

[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def node(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Booted with the package in it, whose service begins as at every boot."""
    with laid_over(tmp_path_factory.mktemp("node"), installed) as root:
        NodeTree(root / "opt/with_nvswitch").switch()
        NodeTree(root / "opt/without").gpu()
        write(root, "/etc/nodeagent-test.toml", configuration("with_nvswitch"))
        write(root, f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        write(root, f"/etc/systemd/system/{FABRIC_MANAGER}", SERVICE)
        switch(root, "enable", FABRIC_MANAGER)
        with booted(root) as machine:
            yield machine


def configuration(tree: str) -> str:
    return f"""
[drivers.kmsg]
path = "{KMSG}"

[drivers.host]
poll_interval = "1s"
sysfs = "/opt/{tree}/sys"
services = ["marker.service"]
"""


def codes(node: Machine) -> set[str]:
    with node.client() as client:
        return {each.code for each in client.conditions() if each.source == "host"}


def is_missed(node: Machine) -> bool:
    return FABRIC_MANAGER_DOWN in codes(node)


def has_logged(node: Machine, words: str) -> bool:
    """A line of the daemon's that ends with these."""
    lines = node.read("journalctl", "--unit", UNIT).splitlines()
    return any(line.endswith(words) for line in lines)


def test_a_fabric_manager_that_stops_or_dies_is_a_fault_until_it_runs_again(node: Machine) -> None:
    until(lambda: codes(node), lambda found: MARKER_DOWN in found)
    assert not is_missed(node)

    node.run("systemctl", "stop", FABRIC_MANAGER)
    until(lambda: is_missed(node), bool)
    node.run("systemctl", "start", FABRIC_MANAGER)
    until(lambda: is_missed(node), lambda missed: not missed)
    node.run("systemctl", "kill", "--signal=KILL", FABRIC_MANAGER)
    until(lambda: is_missed(node), bool)

    assert node.property_of(FABRIC_MANAGER, "ActiveState") == "failed"
    node.run("systemctl", "start", FABRIC_MANAGER)
    until(lambda: is_missed(node), lambda missed: not missed)


def test_a_node_without_nvswitches_is_silent_of_it(node: Machine) -> None:
    node.write("/etc/nodeagent-test.toml", configuration("without"))
    node.run("systemctl", "stop", FABRIC_MANAGER)
    node.run("systemctl", "restart", UNIT)

    until(lambda: has_logged(node, ONLY_THE_MARKER), bool)
    until(lambda: is_missed(node), lambda missed: not missed)

    events = [json.loads(line) for line in node.read("nodeagent", "events", "-o", "json").splitlines()]
    start = max(place for place, event in enumerate(events) if event["kind"] == "started")
    assert FABRIC_MANAGER_DOWN not in {event["code"] for event in events[start:] if event["kind"] == "raised"}
    assert MARKER_DOWN in codes(node)


def test_the_daemon_sees_which_services_run_and_cannot_speak_with_systemd(node: Machine) -> None:
    pid = node.property_of(UNIT, "MainPID")
    seen = node.read("ls", f"/proc/{pid}/root/run/systemd/units")

    assert f"invocation:{UNIT}" in seen
    for socket in ("/run/dbus/system_bus_socket", "/run/systemd/private"):
        assert node.run("test", "-e", socket, check=False).returncode == 0
        assert node.run("test", "-e", f"/proc/{pid}/root{socket}", check=False).returncode == 1
