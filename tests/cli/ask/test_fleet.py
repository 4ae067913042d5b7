"""``nodeagent fleet`` as a user runs it, against a real daemon on its socket."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.cli.ask import fleet_forms
from nodeagent.cli.shared import json_forms
from nodeagent.client import Snapshot, Verdict
from nodeagent.client.session import WatchSession
from nodeagent.fleet.news import News, What, received_values
from nodeagent.fleet.state import Contact, NodeState, with_contact, with_devices
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.cli.conftest import Nodeagent, Ran
from tests.fleet.given import AT, answering, device, position
from tests.harness.node import Node, running
from tests.waiting import wait_until

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A chip that is isolated."""
    node = Node.within(tmp_path_factory.mktemp("fleet"))
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        yield node


@pytest.fixture
def nodes(node: Node, tmp_path: Path) -> Path:
    """A list of this node, and of one that does not answer."""
    path = tmp_path / "nodes"
    path.write_text(f"gpu-1 {node.socket}\ngpu-2 {tmp_path}/gone.sock\n")
    return path


def test_the_table_shows_what_is_not_well_the_worst_first(nodes: Path, nodeagent_process: Nodeagent) -> None:
    ran: Ran = nodeagent_process("fleet", "--nodes", nodes, "--once")
    lines = ran.out.splitlines()
    assert ran.status == 0
    assert lines[0] == "2 nodes: 1 ISOLATE, 1 UNKNOWN; 1 not answering"
    assert [line.split()[:2] for line in lines[2:]] == [
        ["NODE", "VERDICT"],
        ["gpu-1", "ISOLATE"],
        ["gpu-2", "UNKNOWN"],
    ]
    assert "0000:3b:00.0 XID_79" in lines[3]
    assert "away since" in lines[4]


def test_in_json_each_node_is_an_object(nodes: Path, nodeagent_process: Nodeagent) -> None:
    first, second = nodeagent_process("fleet", "--nodes", nodes, "--once", "-o", "json").json
    keys = "node address name contact reason since verdict handling seq store_id devices"
    assert list(first) == keys.split()
    assert (first["contact"], first["verdict"], first["handling"]) == ("answers", "ISOLATE", "RESCHEDULE")
    (chip,) = [each for each in first["devices"] if each["kind"] == "chip"]
    assert (chip["name"], chip["verdict"], chip["codes"]) == ("0000:3b:00.0", "ISOLATE", ["XID_79"])
    assert (second["contact"], second["verdict"], second["devices"]) == ("away", "UNKNOWN", [])


def test_the_stream_has_the_state_and_then_each_event(node: Node, nodes: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    options = (
        "-o",
        "json",
        "--exec",
        f"sh -c 'echo $NODEAGENT_NODE $NODEAGENT_WHAT $NODEAGENT_CODE >> {ran}'",
    )
    with running("fleet", "--nodes", nodes, *options) as lines:
        state = json.loads(lines.until('"state"'))
        node.write(XID.replace("79", "63"))
        event = json.loads(lines.until("XID_63"))
        wait_until(lambda: ran.exists() and "XID_63" in ran.read_text(), "the command")
    assert list(state)[:7] == ["node", "what", "store_id", "seq", "at", "reason", "missed_from_seq"]
    assert list(state)[7:11] == ["verdict", "handling", "devices", "conditions"]
    assert list(state)[11:] == ["promotions", "holds", "actions", "jobs"]
    assert (state["node"], state["reason"], state["verdict"]) == ("gpu-1", "no_position", "ISOLATE")
    assert list(event) == ["node", "what", "store_id", *json_forms.form(types_pb2.Event())]
    assert (event["node"], event["what"], event["kind"]) == ("gpu-1", "event", "raised")
    assert ran.read_text().splitlines()[0] == "gpu-1 state"


def test_a_newer_daemons_reason_for_a_whole_state_is_no_text_and_ends_nothing() -> None:
    sent = pb.WatchResponse(snapshot=pb.Snapshot(reason=99))  # type: ignore[arg-type]
    ((value, message),) = received_values(WatchSession(), sent)
    assert isinstance(value, Snapshot)
    news = News(what=What.STATE, node=answering(), at=AT, message=message, value=value, position=position(1))
    assert json.loads(fleet_forms.line(news))["reason"] == ""


def test_for_people_each_event_is_a_line_with_its_node(node: Node, nodes: Path) -> None:
    with running("fleet", "--nodes", nodes) as lines:
        assert lines.until("state").split()[1:4] == ["state", "gpu-1", "ISOLATE"]
        node.write(XID.replace("79", "94"))
        assert lines.until("XID_94").split()[1:3] == ["raised", "gpu-1"]


def test_a_reader_that_goes_away_ends_it(node: Node, nodes: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "nodeagent.cli", "fleet", "--nodes", nodes, "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    node.write(XID.replace("79", "48"))
    try:
        assert process.wait(60) == 1
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_ctrl_c_ends_it_and_keeps_the_positions(nodes: Path, tmp_path: Path) -> None:
    kept = tmp_path / "positions"
    command = (
        sys.executable,
        "-m",
        "nodeagent.cli",
        "fleet",
        "--nodes",
        nodes,
        "-o",
        "json",
        "--positions",
        kept,
    )

    def is_kept() -> bool:
        """The file is locked while it is followed: its bytes show what is written."""
        return any(b"gpu-1" in each.read_bytes() for each in tmp_path.glob("positions*"))

    def printed_until_interrupted(lines: int) -> set[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        with process.stdout as stream:
            said = {json.loads(stream.readline())["what"] for _ in range(lines)}
            # What was printed but not yet noted is printed again: that is the promise.
            wait_until(is_kept, "the position on the disk")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        return said

    assert printed_until_interrupted(2) == {"state", "away"}
    assert printed_until_interrupted(1) == {"away"}, "the state was done with"


def test_on_a_terminal_it_is_a_table_that_is_drawn_again(node: Node, nodes: Path) -> None:
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nodeagent.cli", "fleet", "--nodes", nodes],
        stdin=terminal,
        stdout=terminal,
        env={**os.environ, "COLUMNS": "200", "LINES": "40", "NO_COLOR": "1"},
    )
    os.close(terminal)
    try:
        seen = _until_drawn(control, b"1 ISOLATE, 1 UNKNOWN; 1 not answering")
        assert b"\x1b[2J\x1b[1;1H" in seen
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        os.close(control)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ca", "ca.pem"), "--ca, --cert and --key go together: name all three, or none"),
        (("--once", "--exec", "true"), "--exec is about events: leave it out, or leave out --once"),
        (("--nodes", "dns:x"), "--nodes: dns:x: nodes are reached over TCP with certificates; give --ca,"),
        (("--nodes", "dns:"), "--nodes: no name after dns:"),
        (("--exec", "no-such-program"), "--exec: no program no-such-program that can be run; name its path"),
        (("--exec", "'"), '--exec: "\'": No closing quotation'),
    ],
)
def test_what_does_not_go_together_is_refused(
    nodes: Path, nodeagent_process: Nodeagent, options: tuple[str, ...], said: str
) -> None:
    ran: Ran = nodeagent_process("fleet", "--nodes", nodes, *options)
    assert ran.status == 2
    assert said in ran.err


def test_targets_of_one_look_are_written_and_a_folder_that_is_missing_is_named(
    nodes: Path, tmp_path: Path, nodeagent_process: Nodeagent
) -> None:
    path = tmp_path / "targets.json"
    assert nodeagent_process("fleet", "--nodes", nodes, "--once", "--file-sd", path).status == 0
    verdicts = [each["labels"]["__meta_nodeagent_verdict"] for each in json.loads(path.read_text())]
    assert verdicts == ["ISOLATE", "UNKNOWN"]
    ran: Ran = nodeagent_process("fleet", "--nodes", nodes, "--once", "--file-sd", tmp_path / "no" / "file")
    assert (ran.status, ran.err) == (
        1,
        f"nodeagent: --file-sd {tmp_path}/no/file: No such file or directory\n",
    )


def test_a_list_with_errors_is_refused_with_each_of_them(
    tmp_path: Path, nodeagent_process: Nodeagent
) -> None:
    path = tmp_path / "wrong"
    path.write_text("gpu-1\na b c\n")
    ran: Ran = nodeagent_process("fleet", "--nodes", path, "--once")
    assert (ran.status, ran.out) == (1, "")
    assert [line.partition(": ")[2].partition(";")[0] for line in ran.err.splitlines()] == [
        f"{path}:1: gpu-1: nodes are reached over TCP with certificates",
        f"{path}:2: 3 fields",
    ]


def test_a_table_that_does_not_fit_names_how_many_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    states = [
        with_devices(answering(f"gpu-{number}"), [device("gpu0", Verdict.ISOLATE)], position(1))
        for number in range(5)
    ]
    fleet_forms.write_nodes(states, every=False, most=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 nodes: 5 ISOLATE"
    assert [line.split()[0] for line in lines[3:5]] == ["gpu-0", "gpu-1"]
    assert lines[-1] == "and 3 more; -o json --once shows each"


def test_nodes_that_are_well_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    fleet_forms.write_nodes([with_devices(answering(), [device("gpu0")], position(1))], every=False)
    assert capsys.readouterr().out == "1 node: 1 ALLOW\n1 other nodes are well; --all shows each\n"


def test_that_a_node_does_not_answer_is_a_line_with_the_reason() -> None:
    away = with_contact(NodeState(endpoint=answering().endpoint), Contact.AWAY, "UNAVAILABLE: refused", AT)
    said: dict[str, Any] = json.loads(
        fleet_forms.line(News(what=What.AWAY, node=away, at=AT, reason=away.reason))
    )
    assert said == {
        "node": "gpu-17",
        "what": "away",
        "at": "2026-01-02T03:04:05.000000Z",
        "reason": "UNAVAILABLE: refused",
    }


def _until_drawn(terminal: int, words: bytes) -> bytes:
    """What was drawn until these words came."""
    seen = b""
    while words not in seen:
        readable, _, _ = select.select([terminal], [], [], 60)
        assert readable, f"never drawn: {words!r}, after {seen!r}"
        seen += os.read(terminal, 65536)
    return seen
