"""Processes of nodes and the follower are killed while events come: none is missing, and each is in order."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.cluster import cluster, following
from tests.fleet.expected import Expected
from tests.fleet.output import Output
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("ports of a cluster")
NODES_EACH = 8


def test_no_event_is_missing_though_nodes_and_the_follower_are_killed(place: Path) -> None:
    output, positions = Output(place / "output"), place / "positions"
    with cluster(place, machines=3, nodes_each=NODES_EACH) as nodes:
        expected = Expected(nodes, output)
        killed, *others = nodes.machines
        with following(nodes, place / "output", "--positions", positions) as first:
            wait_until(lambda: len(output.read().begun) == 3 * NODES_EACH, "each state")
            expected.faults(3)
            killed.kill()
            expected.faults(2, others)
            nodes.start([killed])
            expected.faults(2, [killed])
            expected.wait()
            assert output.repeated == 0
            expected.faults(2)
            first.kill()
        expected.faults(1)
        with following(nodes, place / "output", "--positions", positions):
            expected.wait()
            assert output.missing(expected.last) == {}
            assert output.out_of_order == []
            assert set(output.states.values()) == {1}
    assert {(name, "away") for name in killed.names} <= set(output.contacts)
    assert {(name, "back") for name in killed.names} <= set(output.contacts)


def test_a_follower_that_is_reported_to_end_repeats_nothing(place: Path) -> None:
    output, positions = Output(place / "output"), place / "positions"
    with cluster(place, machines=1, nodes_each=2) as nodes:
        expected = Expected(nodes, output)
        with following(nodes, place / "output", "--positions", positions) as first:
            wait_until(lambda: len(output.read().begun) == 2, "each state")
            expected.faults(3)
            expected.wait()
            first.send_signal(signal.SIGTERM)
            assert first.wait(30) == 0
        expected.faults(3)
        with following(nodes, place / "output", "--positions", positions):
            expected.wait()
    assert (output.missing(expected.last), output.repeated, output.out_of_order) == ({}, 0, [])


def test_the_nodes_behind_a_name_are_followed_and_called_what_they_call_themselves(place: Path) -> None:
    """``localhost`` may have an address of IPv6 too, at which nobody listens."""
    with cluster(place, machines=1, nodes_each=1) as nodes:
        (machine,) = nodes.machines
        command = (sys.executable, "-m", "nodeagent.cli", "fleet", "--once", "-o", "json")
        name = f"dns:localhost:{machine.ports[0]}"
        done = subprocess.run(
            [*command, *nodes.certificates, "--nodes", name], stdout=subprocess.PIPE, text=True, check=True
        )
    found = {each["node"]: each for each in map(json.loads, done.stdout.splitlines())}
    node = found[f"127.0.0.1:{machine.ports[0]}"]
    assert (node["contact"], node["name"], node["verdict"]) == ("answers", "node-0000", "ALLOW")
