"""A daemon that pauses for a second breaks no command: each waits for it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeagent.client import Client
from tests.harness.node import Node, daemon_of
from tests.waiting import wait_until

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
