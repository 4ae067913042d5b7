"""Isolate, release and inject against a real daemon."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.client import Client, ClientError
from nodeagent.messages.pb import control_service_pb2 as pb
from tests.cli.conftest import Nodeagent
from tests.harness.node import Node

GPU = "0000:3b:00.0"
RESET_NEEDED = "NVRM: Xid (PCI:0000:3b:00): 95, pid=1234, name=python, Uncontained error."


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node.within(tmp_path)
    with node.daemon():
        yield node


def verdict_of(nodeagent: Nodeagent, name: str) -> str:
    devices = nodeagent("status", "-o", "json").json[0]["devices"]
    return str({each["name"]: each["verdict"] for each in devices}[name])


@pytest.mark.usefixtures("node")
def test_a_device_is_out_of_service_until_its_owner_releases_it(nodeagent: Nodeagent) -> None:
    isolated = nodeagent("isolate", "node", "--reason", "bench", "-o", "json")
    standing = nodeagent("status", "-o", "json").json[0]
    released = nodeagent("release", "node", "--reason", "done", "-o", "json")

    hold = isolated.json[0]
    assert (hold["device"], hold["owner"], hold["reason"], hold["until"]) == ("node", "alice", "bench", None)
    assert (hold["set_by"], hold["durable"]) == ("uid:0", True)
    assert [(each["id"], each["owner"]) for each in standing["holds"]] == [(hold["id"], "alice")]
    assert standing["devices"][0]["verdict"] == "ISOLATE"
    assert released.json == [{"device": "node", "released": [hold["id"]], "others": [], "durable": True}]
    assert verdict_of(nodeagent, "node") == "ALLOW"


@pytest.mark.usefixtures("node")
def test_an_isolation_for_a_while_shows_its_end(nodeagent: Nodeagent) -> None:
    isolated = nodeagent("isolate", "node", "--reason", "bench", "--for", "2h")
    assert isolated.err == ""
    assert isolated.out.startswith("isolated node for alice, until 20")
    assert isolated.out.endswith("Z: bench\n")


def test_a_scripts_short_isolation_leaves_a_persons_long_one_as_it_was(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    with Node.within(tmp_path).daemon() as stream:
        rma = nodeagent("isolate", "node", "--reason", "RMA", "-o", "json").json[0]
        by_script = nodeagent("isolate", "node", "--reason", "bench", "--for", "1s", "--owner", "script")
        shorter = nodeagent("isolate", "node", "--reason", "RMA", "--for", "1s")
        stream.until("released ")
        status = nodeagent("status", "-o", "json").json[0]

    assert by_script.out.startswith("isolated node for script, until 20")
    assert shorter.out == "isolated node for alice, until it is released: RMA\n"
    assert shorter.err == (
        "nodeagent: alice already holds it for longer; to shorten the hold, release it first\n"
    )
    assert [(each["id"], each["reason"], each["until"]) for each in status["holds"]] == [
        (rma["id"], "RMA", None)
    ]
    assert status["devices"][0]["verdict"] == "ISOLATE"


@pytest.mark.usefixtures("node")
def test_a_hold_of_another_is_named_and_ended_by_its_id_or_by_force_which_the_audit_log_tells(
    nodeagent: Nodeagent,
) -> None:
    ids = [
        nodeagent("isolate", "node", "--reason", why, "--owner", owner, "-o", "json").json[0]["id"]
        for owner, why in (("bob", "RMA"), ("bob", "burn-in"), ("alice", "bench"))
    ]
    mine = nodeagent("release", "node", "--reason", "done")
    refused = nodeagent("release", "node", "--reason", "done")
    by_id = nodeagent("release", "node", "--reason", "he is ill", "--id", ids[0], "-o", "json").json[0]
    by_force = nodeagent("release", "node", "--reason", "he is ill", "--force")
    audit = nodeagent("audit", "--after", "0", "-o", "json").json

    bobs = f"bob (RMA), id {ids[0]}; bob (burn-in), id {ids[1]}"
    assert mine.out.splitlines() == [
        f"released {ids[2]}",
        f"still isolated by bob: RMA (id {ids[0]})",
        f"still isolated by bob: burn-in (id {ids[1]})",
    ]
    then = "alice has no hold there: use --owner or --id to name one, or --force"
    assert (refused.status, refused.err) == (1, f"nodeagent: node is isolated by {bobs}; {then}\n")
    assert (by_id["released"], [each["id"] for each in by_id["others"]]) == ([ids[0]], [ids[1]])
    assert by_force.out == f"released {ids[1]}\n"
    ended = [
        (each["who"].partition(" for ")[2], each["result"])
        for each in audit
        if each["what"] == "ReleaseDevice"
    ]
    assert ended[2:4] == [
        ("alice", f"released {ids[0]}: he is ill"),
        ("alice", f"released by force {ids[1]}: he is ill"),
    ]


@pytest.mark.usefixtures("node")
def test_events_status_and_why_show_whose_hold_it_is_and_who_set_it(nodeagent: Nodeagent) -> None:
    nodeagent("isolate", "node", "--reason", "RMA")
    events = nodeagent("events", "--kind", "isolated").out
    status, why = nodeagent("status").out, nodeagent("why", "node").out

    assert events.endswith(" alice (uid:0): RMA\n")
    assert re.search(r"^node +ISOLATE +\d+ s +isolated by alice +RMA$", status, re.MULTILINE)
    assert "\nhold: alice: RMA\n  set by uid:0 at 20" in why


def test_an_isolation_survives_the_daemon(tmp_path: Path, nodeagent: Nodeagent) -> None:
    node = Node.within(tmp_path)
    with node.daemon():
        nodeagent("isolate", "node", "--reason", "bench")
    with node.daemon():
        assert verdict_of(nodeagent, "node") == "ISOLATE"


@pytest.mark.usefixtures("node")
def test_what_cannot_be_isolated_or_released_is_reported(nodeagent: Nodeagent) -> None:
    said = {
        words: (ran := nodeagent(*words.split()), ran.status, ran.err.strip())[1:]
        for words in (
            "isolate npu9 --reason bench",
            "isolate node --reason bench --for 2",
            "isolate node --reason bench --for 2hours",
            "isolate node --reason bench --for 0s",
            "isolate node --reason bench --for 9999999d",
            "release node --reason done",
            "release node --reason done --id no/such#1",
        )
    }
    assert said["isolate npu9 --reason bench"] == (
        1,
        "nodeagent: device: 'npu9' is not known; there are: node",
    )
    wanted = "is not a duration: a whole number and one of ms, s, m, h, d, such as 90m"
    for length, why in (
        ("2", f"'2' {wanted}"),
        ("2hours", f"'2hours' {wanted}"),
        ("0s", "must be longer than 0"),
        ("9999999d", "must be 3650d at most"),
    ):
        status, output = said[f"isolate node --reason bench --for {length}"]
        assert (status, output.splitlines()[-1]) == (2, f"Error: Invalid value for '--for': {why}")
    assert said["release node --reason done"] == (
        1,
        "nodeagent: there is nothing to release on node",
    )
    assert said["release node --reason done --id no/such#1"] == (
        1,
        "nodeagent: id: 'no/such#1' is not on node; there is: nothing",
    )


def test_a_device_that_is_not_seen_to_be_well_is_released_by_force_only(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        node.write(RESET_NEEDED)
        stream.until("XID_95")
        nodeagent("isolate", GPU, "--reason", "bench")
        refused = nodeagent("release", GPU, "--reason", "done")
        forced = nodeagent("release", GPU, "--reason", "done", "--force")

    why = "XID_95 at RestartNPU, and is not observed; clear it first, or use --force"
    assert (refused.status, refused.err) == (1, f"nodeagent: {GPU} is still faulty: {why}\n")
    assert forced.out == f"released slot:{GPU}/hold:alice#1\n"


@pytest.mark.usefixtures("node")
def test_an_injected_fault_is_shown_and_changes_a_verdict_only_when_it_is_to(nodeagent: Nodeagent) -> None:
    unknown = nodeagent("inject", "--device", "node", "--code", "NOPE")
    shown = nodeagent("inject", "--device", "node", "--code", "HBA_FAULT", "-o", "json").json[0]
    unchanged = verdict_of(nodeagent, "node")
    other = nodeagent("inject", "--device", "node", "--code", "SCSI_OFFLINE", "--affect-verdict")
    conditions = nodeagent("status", "-o", "json").json[0]["conditions"]

    assert (unknown.status, unknown.err) == (
        0,
        "warning: code 'NOPE' is in no table: it was handled as an unknown code\n",
    )
    assert other.err == ""
    assert shown["condition_id"].endswith("/HBA_FAULT!injected#1")
    assert unchanged == "ALLOW"
    assert other.out.startswith("injected SCSI_OFFLINE on node: ")
    assert [(each["code"], each["injected"], each["affects_verdict"]) for each in conditions] == [
        ("NOPE", True, False),
        ("HBA_FAULT", True, False),
        ("SCSI_OFFLINE", True, True),
    ]


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (pb.IsolateDeviceRequest(device="node"), "INVALID_ARGUMENT", "reason: 1 to 512 printable characters"),
        (
            pb.IsolateDeviceRequest(device="node", reason="bench", until=Timestamp(seconds=1)),
            "INVALID_ARGUMENT",
            "until: 1970-01-01T00:00:01Z is not in the future",
        ),
        (pb.InjectRequest(device="node"), "INVALID_ARGUMENT", "code: 1 to 128 printable characters"),
        (
            pb.InjectRequest(device="node", code="X", evidence={f"key{n}": "" for n in range(17)}),
            "INVALID_ARGUMENT",
            "evidence: 17 entries; at most 16",
        ),
    ],
)
def test_a_request_with_a_wrong_field_is_refused_by_its_name(
    node: Node, request_: Message, status: str, reason: str
) -> None:
    with Client(node.configuration.parent / "c.sock") as client, pytest.raises(ClientError) as refused:
        client.call(request_)
    assert refused.value.status == status
    assert refused.value.reason.startswith(reason)
