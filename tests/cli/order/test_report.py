"""``nodeagent report``: one fault by options, or a message of MindCluster from a file, to a real daemon."""

import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import Client, ClientError
from nodeagent.messages.pb import control_service_pb2 as pb
from tests.cli.conftest import Nodeagent
from tests.harness.node import Node

CODE = "110001010"
BEGAN_MS = 1_780_000_000_000

pytestmark = pytest.mark.usefixtures("node")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node.within(tmp_path)
    with node.configuration.open("a") as configuration:
        configuration.write('[public]\nburst = 4\nrefill = "1h"\n')
    with node.daemon():
        yield node


def conditions(nodeagent: Nodeagent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = nodeagent("status", "-o", "json").json[0]["conditions"]
    return found


def message(**values: object) -> dict[str, Any]:
    """As MindCluster's documentation has it."""
    fault = {
        "faultId": "fault-01",
        "faultType": "Node",
        "faultCode": CODE,
        "faultTime": BEGAN_MS,
        "assertion": "occur",
        "faultLocation": {"npuIp": "10.0.0.7"},
        "influence": [{"nodeName": socket.gethostname(), "deviceIds": []}],
        "description": "the node is slow",
        **values,
    }
    return {
        "id": "11937763019253715778",
        "timestamp": BEGAN_MS,
        "version": "1.0",
        "resource": "fd-online",
        "faults": [fault],
    }


def test_a_fault_by_options_opens_is_repeated_and_ends(nodeagent: Nodeagent) -> None:
    report = ("report", CODE, "node", "--sender", "pingmesh", "--location", "npuIp=10.0.0.7")
    opened = nodeagent(*report, "--description", "the node is slow", "-o", "json")
    repeated = nodeagent(*report, "--began", "2025-06-01T00:00:00Z")
    (condition,) = conditions(nodeagent)
    closed = nodeagent("report", CODE, "node", "--sender", "pingmesh", "--recover")

    fault_id = f"{CODE}.node"
    assert opened.json == [
        {
            "sender": "pingmesh",
            "results": [{"fault_id": fault_id, "outcome": "taken"}],
            "durable": True,
        }
    ]
    assert repeated.out == f"{fault_id}: repeated\n"
    assert (condition["code"], condition["source"], condition["level"]) == (CODE, "public", "SubHealthFault")
    evidence = condition["evidence"]
    assert evidence.pop("began_at").startswith("20")
    assert evidence == {
        "sender": "pingmesh",
        "reported_by": f"uid:{os.geteuid()}",
        "fault_id": fault_id,
        "fault_type": "node",
        "description": "the node is slow",
        "location.npuIp": "10.0.0.7",
    }
    assert closed.out == f"{fault_id}: closed\n"
    assert conditions(nodeagent) == []


def test_a_message_of_mindcluster_is_taken_as_it_is(nodeagent: Nodeagent, tmp_path: Path) -> None:
    file = tmp_path / "message.json"
    file.write_text(json.dumps(message()))
    assert nodeagent("report", "--file", file).out == "fault-01: taken\n"
    (condition,) = conditions(nodeagent)
    assert condition["evidence"]["sender"] == "fd-online"
    assert condition["evidence"]["began_at"] == "2026-05-28T20:26:40Z"
    file.write_text(json.dumps(message(assertion="recover")))
    assert nodeagent("report", "--file", file).out == "fault-01: closed\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"faultTime": "now"}, "Expected `int`, got `str` - at `$.faults[0].faultTime`"),
        ({"assertion": "gone"}, "Invalid enum value 'gone' - at `$.faults[0].assertion`"),
        ({"faultCode": None}, "Expected `str`, got `null` - at `$.faults[0].faultCode`"),
        ({"level": "x"}, "Object contains unknown field `level` - at `$.faults[0]`"),
        (
            {"influence": [{"deviceIds": [-1]}]},
            "Expected `int` >= 0 - at `$.faults[0].influence[0].deviceIds",
        ),
    ],
)
def test_a_file_that_is_no_message_is_refused_with_the_place(
    nodeagent: Nodeagent, tmp_path: Path, wrong: dict[str, object], said: str
) -> None:
    file = tmp_path / "message.json"
    file.write_text(json.dumps(message(**wrong)))
    ran = nodeagent("report", "--file", file)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {file}: {said}")


def test_a_file_that_is_not_there_is_named(nodeagent: Nodeagent) -> None:
    ran = nodeagent("report", "--file", "/no/such/message.json")
    assert (ran.status, ran.err) == (1, "nodeagent: /no/such/message.json: No such file or directory\n")


def test_what_the_daemon_refuses_is_shown_and_nothing_is_applied(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    file = tmp_path / "message.json"
    both = message()
    both["faults"].append(message(influence=[{"nodeName": "elsewhere", "deviceIds": [0]}])["faults"][0])
    file.write_text(json.dumps(both))
    ran = nodeagent("report", "--file", file)
    assert ran.status == 1
    assert ran.err == (
        "nodeagent: faults[1].influence[0].node_name: 'elsewhere' is another node;"
        f" this is '{socket.gethostname()}': report it there\n"
    )
    assert conditions(nodeagent) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name CODE and DEVICES, or a --file"),
        ((CODE, "--sender", "CCAE"), "name CODE and DEVICES, or a --file"),
        (
            (CODE, "node", "--sender", "CCAE", "--recover", "--once"),
            "--recover and --once exclude each other",
        ),
        ((CODE, "node", "--sender", "CCAE", "--location", "x"), "'x' is not KEY=VALUE"),
        ((CODE, "node", "--sender", "CCAE", "--began", "today"), "Invalid value for --began"),
    ],
)
def test_a_wrong_command_line_shows_what_is_right(
    nodeagent: Nodeagent, options: tuple[str, ...], said: str
) -> None:
    ran = nodeagent("report", *options)
    assert ran.status == 2
    assert said in ran.err


def test_reports_are_audited_and_who_is_too_fast_hears_when_to_try_again(
    node: Node, nodeagent: Nodeagent
) -> None:
    for _ in range(4):
        assert nodeagent("report", CODE, "node", "--sender", "CCAE").status == 0
    refused = nodeagent("report", CODE, "node", "--sender", "CCAE")
    assert refused.status == 1
    assert re.fullmatch(
        r"nodeagent: sender: CCAE is too fast \(4 messages at once, then one each 3600 s\);"
        r" try again in 3[56]\d\d s\n",
        refused.err,
    )
    request = pb.ReportPublicFaultRequest(sender="CCAE")
    with Client(node.configuration.parent / "c.sock") as client, pytest.raises(ClientError) as hinted:
        client.call(request)
    assert hinted.value.retry_after_s is not None
    assert 0 < hinted.value.retry_after_s <= 3600
    entries = nodeagent("audit", "-o", "json").json
    entries = nodeagent("audit", "-o", "json").json
    audited = [(each["what"], each["target"], each["result"]) for each in entries]
    assert [result.partition(": ")[2] for _, _, result in audited[:4]] == ["1 taken", *["1 repeated"] * 3]
    assert audited[4][:2] == ("ReportPublicFault", "CCAE")
    assert audited[4][2].startswith("refused: sender: CCAE is too fast")


def test_the_configuration_of_senders_is_taken_at_a_reload(node: Node, nodeagent: Nodeagent) -> None:
    report = ("report", CODE, "node", "--sender", "my-checker")
    before = nodeagent(*report)
    with node.configuration.open("a") as configuration:
        configuration.write("[public.senders.my-checker]\nenabled = false\n")
    assert nodeagent("tables", "reload").status == 0
    after = nodeagent(*report)
    assert (before.out, after.status) == (f"{CODE}.node: taken\n", 1)
    assert "must be one of CCAE, fd-online" in after.err


def test_a_person_names_no_sender(nodeagent: Nodeagent) -> None:
    nodeagent("report", CODE, "node")
    (condition,) = conditions(nodeagent)
    assert condition["evidence"]["sender"] == "operator"


def test_a_code_of_no_table_is_taken_and_reported(nodeagent: Nodeagent) -> None:
    taken = nodeagent("report", "SITE_SLOW", "node")
    (condition,) = conditions(nodeagent)
    over = nodeagent("report", "SITE_SLOW", "node", "--recover")
    assert (taken.out, taken.err) == (
        "SITE_SLOW.node: taken\n",
        (
            "nodeagent: code 'SITE_SLOW' is in no table, so it is SubHealthFault; a row in your tables"
            " can give it another level\n"
        ),
    )
    assert (condition["level"], condition["unknown"]) == ("SubHealthFault", True)
    assert (over.out, over.err) == ("SITE_SLOW.node: closed\n", "")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (
            (CODE, "gpu3"),
            "faults[0].influence[0].devices[0]: 'gpu3' is not known; there are: node",
        ),
        (
            ("XID_79", "node"),
            "faults[0].code: 'XID_79' is of kind chip, which fits devices of kind chip, instance",
        ),
        ((CODE, "node", "--sender", "a b"), "sender: 'a b': must be one of CCAE,"),
        (
            (CODE, "node", "--recover", "--began", "2286-11-20T17:46:39Z"),
            "faults[0].began_at: 2286-11-20T17:46:39Z is ",
        ),
        ((CODE, "node", "--description", "\x1b]0;x\x07"), "faults[0].description: at most 512 characters"),
    ],
)
def test_a_report_that_is_refused_changes_nothing(
    nodeagent: Nodeagent, order: tuple[str, ...], said: str
) -> None:
    ran = nodeagent("report", *order)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {said}")
    assert conditions(nodeagent) == []
