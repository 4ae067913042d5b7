"""Where no daemon answers a command says so in one line: which socket, and what to do."""

import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Nodeagent

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
    assert ran.err == (
        f"nodeagent: the daemon is not running: no socket {tmp_path}/n.sock; start it with "
        '"systemctl start nodeagent" or "nodeagent run", or name its socket with --socket\n'
    )


def test_a_socket_that_a_dead_daemon_left_is_told_apart(nodeagent: Nodeagent, tmp_path: Path) -> None:
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
