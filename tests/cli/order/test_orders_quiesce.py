"""Quiesce, claim and audit against a real daemon on emulated chips."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from nodeagent.client import Client, ClientError, Snapshot
from nodeagent.messages.pb import control_service_pb2 as pb
from tests.cli.conftest import Nodeagent
from tests.cli.order.acting import CHIPS, Acting, acting
from tests.harness.node import Node


@pytest.fixture(scope="module")
def chips(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    """One daemon for all that is refused, which changes nothing, and for claims that all leave again."""
    with acting(tmp_path_factory.mktemp("refusing")) as node:
        yield node


@pytest.fixture
def node(chips: Acting, monkeypatch: pytest.MonkeyPatch) -> Acting:
    """Whom commands ask."""
    monkeypatch.setenv("NODEAGENT_CONFIG", str(chips.node.configuration))
    return chips


def status(nodeagent: Nodeagent) -> dict[str, Any]:
    status: dict[str, Any] = nodeagent("status", "-o", "json").json[0]
    return status


def claims_of(nodeagent: Nodeagent) -> dict[str, list[str]]:
    """Who claims which chip, of those that are claimed."""
    devices = nodeagent("devices", "-o", "json").json
    return {each["name"]: [claim["job"] for claim in each["claims"]] for each in devices if each["claims"]}


def test_a_quiesced_node_is_reported_until_its_owner_resumes(tmp_path: Path, nodeagent: Nodeagent) -> None:
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        quiesced = nodeagent("quiesce", "--reason", "driver upgrade", "--for", "2h")
        (hold,) = status(nodeagent)["holds"]
        stream.until("quiesced")
    with node.daemon() as stream:
        kept = status(nodeagent)
        shown = nodeagent("status").out
        resumed = nodeagent("resume", "--reason", "done")
        again = nodeagent("resume")
        stream.until("resumed")

    assert quiesced.out.startswith("quiesced for alice, until 20")
    assert quiesced.out.endswith("Z: driver upgrade\n")
    assert (hold["kind"], hold["device"], hold["owner"]) == ("quiesce", "node", "alice")
    assert [(each["id"], each["reason"]) for each in kept["holds"]] == [(hold["id"], "driver upgrade")]
    assert kept["node"]["verdict"] == "ALLOW"
    assert f"quiesced by alice until {hold['until'][:16]}" in shown
    assert (resumed.status, resumed.out) == (0, "resumed\n")
    assert (again.status, again.err) == (1, "nodeagent: this node is not quiesced\n")


def test_a_reset_that_has_begun_is_named_to_who_quiesces(tmp_path: Path, nodeagent: Nodeagent) -> None:
    go_on = tmp_path / "go-on"
    waiting = f'[["sh", "-c", "until test -e {go_on}; do sleep 0.1; done"]]'
    more = f'''trust_process_list = true
allow_volatile_store = true
before = {waiting}
hook_timeout = "60s"'''
    with acting(tmp_path, mode="on", more=more) as node:
        action = nodeagent("reset", "npu3", "--reason", "a test", "-o", "json").json[0]["action_id"]
        node.stream.until("action_started")
        quiesced = nodeagent("quiesce", "--reason", "driver upgrade")
        answer = nodeagent("quiesce", "--reason", "driver upgrade", "-o", "json").json[0]
        go_on.touch()
        node.stream.until("action_finished")
        after = nodeagent("quiesce", "--reason", "driver upgrade", "-o", "json").json[0]

    assert f"\nreset {action} of npu3, npu0, npu1, " in quiesced.out
    assert (answer["under_way"], after["under_way"]) == ([action], [])


def test_quiescing_again_makes_it_longer_and_for_another_reason_is_another_quiesce(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    with Node.within(tmp_path).daemon():
        for more in (("--for", "2h"), (), ("--for", "1s")):
            nodeagent("quiesce", "--reason", "driver upgrade", *more)
        (hold,) = status(nodeagent)["holds"]
        nodeagent("quiesce", "--reason", "bench", "--owner", "bob", "--for", "2h")
        resumed = nodeagent("resume")
        refused = nodeagent("resume")
        forced = nodeagent("resume", "--force")
    assert (hold["reason"], hold["until"]) == ("driver upgrade", None)
    assert re.fullmatch(r"resumed\nstill quiesced by bob: bench \(id .*/quiesce:bob#1\)\n", resumed.out)
    assert refused.err.startswith("nodeagent: this node is quiesced by bob (bench), id ")
    assert forced.out == "resumed\n"


def test_an_isolation_and_a_quiesce_of_one_owner_are_two_holds(tmp_path: Path, nodeagent: Nodeagent) -> None:
    with Node.within(tmp_path).daemon():
        nodeagent("quiesce", "--reason", "driver upgrade")
        isolated = nodeagent("isolate", "node", "--reason", "bench", "-o", "json").json[0]
        released = nodeagent("release", "node", "--reason", "done", "-o", "json").json[0]
        left = status(nodeagent)["holds"]
    assert (isolated["kind"], isolated["reason"]) == ("isolation", "bench")
    assert released["released"] == [isolated["id"]]
    assert [(each["kind"], each["reason"]) for each in left] == [("quiesce", "driver upgrade")]


@pytest.mark.usefixtures("node")
def test_jobs_claim_chips_and_leave_them(nodeagent: Nodeagent) -> None:
    claimed = nodeagent("claim", "npu0", "npu1", "--job", "slurm:7", "--kind", "training")
    nodeagent("claim", "--all", "--job", "slurm:8")
    both = claims_of(nodeagent)
    left = nodeagent("claim", "--job", "slurm:8", "--left", "-o", "json").json[0]
    one = claims_of(nodeagent)
    gone = nodeagent("claim", "--job", "slurm:7", "--left")
    nothing = nodeagent("claim", "--job", "slurm:7", "--left")

    assert claimed.out == "slurm:7 claims npu0, npu1\n"
    assert both == {name: ["slurm:7", "slurm:8"] if name in CHIPS[:2] else ["slurm:8"] for name in CHIPS}
    assert left == {"job": "slurm:8", "claimed": False, "devices": CHIPS, "durable": True}
    assert one == {"npu0": ["slurm:7"], "npu1": ["slurm:7"]}
    assert gone.out == "slurm:7 has left npu0, npu1\n"
    assert (nothing.status, nothing.out) == (0, "slurm:7 has left no device: there is none\n")
    assert claims_of(nodeagent) == {}


def test_claims_are_taken_whole_or_not_at_all(node: Acting, nodeagent: Nodeagent) -> None:
    many = [pb.Claim(device="npu0", job=f"job-{number}", claimed=True) for number in range(65)]
    with Client(node.control_socket) as client:
        for claims, status_, reason in (
            (
                [
                    pb.Claim(device="npu0", job="a", claimed=True),
                    pb.Claim(device="npu9", job="a", claimed=True),
                ],
                "NOT_FOUND",
                "claims[1].device: 'npu9' is not known; the nearest is npu7; ",
            ),
            (
                many,
                "RESOURCE_EXHAUSTED",
                "claims: npu0: at most 64 jobs; end the claims of jobs that have ended",
            ),
        ):
            with pytest.raises(ClientError) as refused:
                client.call(pb.SetClaimsRequest(claims=claims))
            assert (refused.value.status, refused.value.reason[: len(reason)]) == (status_, reason)
    assert claims_of(nodeagent) == {}


@pytest.mark.parametrize(
    ("request_", "status_", "reason"),
    [
        (pb.ResetDeviceRequest(device="npu0"), "INVALID_ARGUMENT", "reason: 1 to 512 printable characters"),
        (pb.ResetDeviceRequest(dry_run=True), "NOT_FOUND", "device: '' is not known"),
        (pb.ApproveActionRequest(), "NOT_FOUND", "action_id: '' is not known; pending: none"),
        (pb.ApproveActionRequest(reason="\n"), "INVALID_ARGUMENT", "reason: 1 to 512 printable characters"),
        (pb.QuiesceRequest(), "INVALID_ARGUMENT", "reason: 1 to 512 printable characters"),
        (
            pb.QuiesceRequest(reason="bench", duration=Duration(seconds=-1)),
            "INVALID_ARGUMENT",
            "duration: 1 s to 365 days, not -1 s",
        ),
        (
            pb.QuiesceRequest(reason="bench", duration=Duration(seconds=10**12)),
            "INVALID_ARGUMENT",
            "duration: 1 s to 365 days, not 1e+12 s",
        ),
        (pb.SetClaimsRequest(), "INVALID_ARGUMENT", "claims: 1 to 1024, not 0"),
        (
            pb.SetClaimsRequest(claims=[pb.Claim(device="node", job="a", claimed=True)]),
            "INVALID_ARGUMENT",
            "claims[0].device: node is not a chip; jobs claim only NPUs and GPUs",
        ),
        (
            pb.SetClaimsRequest(claims=[pb.Claim(device="npu0", claimed=True)]),
            "INVALID_ARGUMENT",
            "claims[0].job: 1 to 128 printable characters",
        ),
        (
            pb.SetClaimsRequest(
                claims=[pb.Claim(device="npu0", job="a", claimed=each) for each in (True, False)]
            ),
            "INVALID_ARGUMENT",
            "claims[1]: a cannot both claim and leave npu0",
        ),
        (pb.ListAuditRequest(limit=1001), "INVALID_ARGUMENT", "limit: 1001; it must be 1 to 1000, or 0"),
    ],
)
def test_a_request_with_a_wrong_field_is_refused_by_its_name(
    chips: Acting, request_: Message, status_: str, reason: str
) -> None:
    with Client(chips.control_socket) as client, pytest.raises(ClientError) as refused:
        client.call(request_)
    assert refused.value.status == status_
    assert refused.value.reason.startswith(reason)


def test_the_audit_log_shows_who_asked_for_what_and_what_came_of_it(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    with Node.within(tmp_path).daemon():
        nodeagent("quiesce", "--reason", "bench")
        nodeagent("claim", "npu9", "--job", "slurm:7")
        nodeagent("resume")
        shown = nodeagent("audit", "-n", "2").out.splitlines()
        audited = nodeagent("audit", "--after", "0", "-o", "json").json

    entries = [(each["number"], each["what"], each["target"], each["result"]) for each in audited[:4]]
    quiesce_id = entries[2][3].removeprefix("resumed ")
    assert entries == [
        (1, "Quiesce", "", "quiesced until resumed: bench"),
        (2, "SetClaims", "npu9", "refused: claims[0].device: 'npu9' is not known; there are: node"),
        (3, "Resume", "", f"resumed {quiesce_id}"),
        (4, "ListAudit", "", "listed 2 entries"),
    ]
    assert quiesce_id.endswith("/quiesce:alice#1")
    assert [re.sub("pid [0-9]+", "pid N", each["who"]) for each in audited[:3]] == [
        "uid 0 pid N for alice",
        "uid 0 pid N",
        "uid 0 pid N for alice",
    ]
    assert [line.split(" by uid 0 pid ")[0][25:] for line in shown] == ["SetClaims npu9", "Resume"]
    assert shown[1].endswith(f": resumed {quiesce_id}")


def test_a_clients_own_program_sees_resets_and_what_holds_are_for(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    with acting(tmp_path) as node:
        action_id = nodeagent("reset", "npu3", "--reason", "bench", "-o", "json").json[0]["action_id"]
        with Client(node.node.socket) as client:
            update = next(iter(client.watch(snapshot="always")))
    assert isinstance(update, Snapshot)
    (reset,) = update.resets
    assert (reset.id, reset.stage, reset.mode, reset.devices[0]) == (action_id, "announced", "ask", "npu3")
    assert {hold.kind for hold in update.holds} == {"reset_pending"}
