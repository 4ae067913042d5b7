"""The examples of clients in other languages, each built as it says and run against a real daemon."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from nodeagent.client import Client
from tests.documents import ROOT
from tests.harness.node import Node, xid_line
from tests.waiting import Lines, wait_until

pytestmark = [pytest.mark.slow]

EXAMPLES: Final = ROOT / "packaging/examples/clients"
GO_PACKAGES: Final = Path("/usr/share/gocode/src/google.golang.org/grpc")
"""Where Debian has them; other systems have none that work without a network."""

NAME: Final = "scheduler"

Command = Sequence[str | Path]


def build_node(folder: Path) -> Command:
    copy = shutil.copytree(EXAMPLES / "node", folder / "node")
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=copy,
        check=True,
        capture_output=True,
        timeout=240,
    )
    return ("node", copy / "follow.js", NAME)


def build_go(folder: Path) -> Command:
    if not GO_PACKAGES.exists():
        pytest.skip("needs the Go packages of Debian")
    subprocess.run([EXAMPLES / "go/build.sh", folder / "follow"], env=_environment(), check=True, timeout=240)
    return (folder / "follow", NAME)


@pytest.fixture(scope="module", params=[build_node, build_go], ids=["node", "go"])
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """What starts the client."""
    started: Command = request.param(tmp_path_factory.mktemp("client"))
    return started


def test_it_shows_the_state_then_each_event_once_over_a_restart_of_the_daemon(
    command: Command, tmp_path: Path
) -> None:
    node = Node.within(tmp_path)
    with following(command, node) as lines:
        with node.daemon():
            state = shown(lines)
            node.write(xid_line(79))
            seen = [shown(lines)]
        with node.daemon():
            node.write(xid_line(48))
            while seen[-1]["code"] != "XID_48":
                seen.append(shown(lines))

    assert state["devices"] == {"node": "VERDICT_ALLOW"}
    numbers = [int(each["seq"]) for each in seen]
    assert numbers == list(range(int(state["snapshot"]) + 1, numbers[-1] + 1))
    assert {key: seen[0][key] for key in ("kind", "device", "code", "verdict", "handling")} == {
        "kind": "EVENT_KIND_RAISED",
        "device": "0000:3b:00.0",
        "code": "XID_79",
        "verdict": "VERDICT_ISOLATE",
        "handling": "HANDLING_RESCHEDULE",
    }


def test_it_goes_on_after_what_it_has_acknowledged(command: Command, tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with node.daemon(), Client(node.socket) as client:
        with following(command, node) as lines:
            shown(lines)
            node.write(xid_line(79))
            last = int(shown(lines)["seq"])
            wait_until(lambda: acknowledged(client) >= last, f"an ack of {last}")
        node.write(xid_line(48))
        with following(command, node) as lines:
            after = shown(lines)

    assert int(after["seq"]) == last + 1


def test_it_ends_with_the_reason_where_trying_again_cannot_help(command: Command, tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    too_long = "x" * 129
    with node.daemon():
        ended = subprocess.run(
            [*command[:-1], too_long],
            env=_environment(node.socket),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert ended.returncode == 1
    assert "consumer" in ended.stderr


def test_no_two_wait_for_the_same_times(command: Command, tmp_path: Path) -> None:
    """Or all clients of a rack would come back at once."""
    assert pauses_ms(command, tmp_path) != pauses_ms(command, tmp_path)


def pauses_ms(command: Command, folder: Path) -> list[int]:
    """How long it waits before each of three tries, where no daemon answers."""
    environment = _environment(folder / "nobody.sock")
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = Lines(process.stderr)
        try:
            said = [lines.until("asking again in") for _ in range(3)]
        finally:
            process.kill()
    return [int(line.partition("asking again in ")[2].split()[0]) for line in said]


@contextmanager
def following(command: Command, node: Node) -> Iterator[Lines]:
    """What the client prints. It is killed at the end."""
    process = subprocess.Popen(command, env=_environment(node.socket), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Lines(process.stdout)
    finally:
        process.kill()
        process.wait(timeout=30)


def shown(lines: Lines) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lines.readline())
    return found


def acknowledged(client: Client) -> int:
    return next((each.seq for each in client.consumers() if each.name == NAME), 0)


def _environment(socket: Path | None = None) -> dict[str, str]:
    at = {} if socket is None else {"NODEAGENT_SOCKET": str(socket)}
    return {**os.environ, "NODEAGENT_PROTO": str(ROOT / "proto"), **at}
