"""Consumers as an operator sees them: who follows this node, and whose name is to go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.client import Client, Position, Snapshot
from tests.cli.conftest import Nodeagent
from tests.harness.node import Node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node.within(tmp_path)
    with node.daemon():
        yield node


@pytest.fixture
def position(node: Node) -> Position:
    """Acknowledged by two consumers."""
    with Client(node.socket) as client:
        update = next(iter(client.watch()))
        assert isinstance(update, Snapshot)
        for name in ("scheduler", "exporter"):
            client.ack(name, update.position)
        return update.position


def test_they_are_listed_with_owner_position_and_lag(nodeagent: Nodeagent, position: Position) -> None:
    listed = nodeagent("consumers", "-o", "json").json
    assert [(each["name"], each["owner"], each["seq"]) for each in listed] == [
        ("exporter", "uid:0", position.seq),
        ("scheduler", "uid:0", position.seq),
    ]
    assert all(each["lag"] >= 0 and each["acked_at"].endswith("Z") for each in listed)
    lines = nodeagent("consumers").out.splitlines()
    assert lines[0].split() == ["CONSUMER", "OWNER", "SEQ", "LAG", "LAST", "ACK"]
    assert [line.split()[0] for line in lines[1:]] == ["exporter", "scheduler"]


@pytest.mark.usefixtures("position")
def test_one_that_is_not_used_any_more_is_deleted(nodeagent: Nodeagent) -> None:
    assert nodeagent("consumers", "delete", "exporter").out == "deleted exporter\n"
    assert nodeagent("consumers", "delete", "scheduler", "-o", "json").json == [
        {"consumer": "scheduler", "deleted": True}
    ]
    assert nodeagent("consumers", "-o", "json").json == []


@pytest.mark.usefixtures("node")
def test_one_that_there_is_none_of_is_reported(nodeagent: Nodeagent) -> None:
    failed = nodeagent("consumers", "delete", "nobody")
    assert (failed.status, failed.err) == (1, "nodeagent: consumer: there is none of the name 'nobody'\n")


@pytest.mark.usefixtures("position")
def test_a_socket_that_is_given_too_early_is_refused_and_nothing_is_deleted(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    refused = nodeagent("consumers", "--socket", tmp_path / "another.sock", "delete", "exporter")
    assert (refused.status, "options go behind 'delete', not before it" in refused.err) == (2, True)
    assert len(nodeagent("consumers", "-o", "json").json) == 2


def test_one_that_has_lost_its_data_is_set_back(nodeagent: Nodeagent, position: Position) -> None:
    first = nodeagent("events", "--after", "0", "-o", "json").json[0]
    assert nodeagent("consumers", "rewind", "exporter", "--to", "2").out == (
        f"set exporter back from {position.seq} to 2\n"
    )
    since = nodeagent("consumers", "rewind", "scheduler", "--since", first["at"], "-o", "json").json
    assert since == [{"consumer": "scheduler", "seq": 0, "seq_before": position.seq, "durable": True}]
    assert [each["seq"] for each in nodeagent("consumers", "-o", "json").json] == [2, 0]
    audited = [(each["what"], each["target"]) for each in nodeagent("audit", "-o", "json").json]
    assert audited == [("RewindConsumer", "exporter"), ("RewindConsumer", "scheduler")]


@pytest.mark.usefixtures("position")
def test_where_to_go_back_to_is_reported_once(nodeagent: Nodeagent) -> None:
    for given in ((), ("--to", "1", "--since", "1h")):
        refused = nodeagent("consumers", "rewind", "exporter", *given)
        assert (refused.status, "one of --to and --since is needed" in refused.err) == (2, True)
    beyond = nodeagent("consumers", "rewind", "exporter", "--to", "1000000")
    assert (beyond.status, "only Ack moves a consumer on" in beyond.err) == (1, True)
