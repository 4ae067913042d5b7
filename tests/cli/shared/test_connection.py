"""Where no daemon answers a command says so in one line: which socket, and what to do.

A daemon that pauses for a second breaks no command: each waits for it.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeagent.client import Client
from tests.cli.conftest import Nodeagent
from tests.harness.node import Node, daemon_of
from tests.waiting import wait_until

ASKING = (
    ("status",),
    ("devices",),
    ("events",),
    ("events", "--follow"),
    ("why", "node"),
)


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_without_a_socket_the_daemon_is_not_running(
    nodeagent: Nodeagent, tmp_path: Path, command: tuple[str, ...]
) -> None:
    ran = nodeagent(*command)

    assert (ran.status, ran.out) == (69, "")
    assert ran.err.splitlines()[0] == (
        f"nodeagent: the daemon is not running: no socket {tmp_path}/n.sock; start it with "
        '"systemctl start nodeagent" or "nodeagent run", or name its socket with --socket'
    )


def test_a_socket_that_a_dead_daemon_left_is_distinguished(nodeagent: Nodeagent, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))

    ran = nodeagent("status", "--socket", tmp_path / "left.sock")

    assert ran.status == 69
    assert ran.err.startswith(
        f"nodeagent: the daemon is not running: nothing listens at {tmp_path}/left.sock"
    )


def test_an_address_is_no_path_of_a_socket(nodeagent: Nodeagent) -> None:
    ran = nodeagent("status", "--socket", "localhost:19109")

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(
        "nodeagent: --socket takes a unix socket's path, not 'localhost:19109'; over TCP "
    )


def test_orders_go_to_the_control_socket(nodeagent: Nodeagent, tmp_path: Path) -> None:
    ran = nodeagent("inject", "--device", "npu0", "--code", "80E18005")

    assert (ran.status, f"no socket {tmp_path}/c.sock" in ran.err) == (69, True)


def test_status_does_not_load_the_daemon(nodeagent_process: Nodeagent) -> None:
    ran = nodeagent_process("status", environment={"PYTHONPROFILEIMPORTTIME": "1"})

    loaded = {
        line.rsplit("|")[-1].strip() for line in ran.err.splitlines() if line.startswith("import time:")
    }
    assert "nodeagent.cli.shared.connection" in loaded
    assert not {name for name in loaded if name.startswith(("nodeagent.daemon", "nodeagent.drivers", "rich"))}


COMMANDS = (
    "status",
    "scan -o json",
    "devices",
    "events",
    "why node",
    "explain XID_79",
    "audit",
    "isolate node --reason bench",
    "quiesce --reason bench",
    "tables reload",
)
PAUSE_S = 1.0


@pytest.mark.root
def test_every_command_waits_for_a_daemon_that_pauses(tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with node.daemon():
        daemon = daemon_of(node.socket)
        os.kill(daemon, signal.SIGSTOP)
        try:
            asked = {command: begun(command) for command in COMMANDS}
            for process in asked.values():
                wait_until_it_asks(process)
            time.sleep(PAUSE_S)
        finally:
            os.kill(daemon, signal.SIGCONT)
        answers = {
            command: (*each.communicate(timeout=60), each.returncode) for command, each in asked.items()
        }

    failed = {
        command: each for command, each in answers.items() if command != "scan -o json" and each[2] != 0
    }
    assert failed == {}
    assert '"by":"daemon"' in answers["scan -o json"][0]


@pytest.mark.root
def test_a_program_of_the_client_library_waits_too(tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with node.daemon(), Client(node.socket) as client:
        daemon = daemon_of(node.socket)
        os.kill(daemon, signal.SIGSTOP)
        resumed = subprocess.Popen(["sh", "-c", f"sleep {PAUSE_S}; kill -CONT {daemon}"])
        devices = client.devices()
        resumed.wait(timeout=30)
    assert [each.name for each in devices] == ["node"]


def wait_until_it_asks(process: "subprocess.Popen[str]") -> None:
    """It has a socket open, or has ended."""

    def asks() -> bool:
        with contextlib.suppress(FileNotFoundError):
            opened = [str(fd.readlink()) for fd in Path(f"/proc/{process.pid}/fd").iterdir()]
            return any(each.startswith("socket:") for each in opened)
        return False

    wait_until(lambda: process.poll() is not None or asks(), "a socket of the command")


def begun(command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "nodeagent.cli", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
