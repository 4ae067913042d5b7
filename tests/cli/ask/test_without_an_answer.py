"""Commands that read where no daemon answers: its store, as of when, and what is known of the daemon."""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeagent.client import Client
from nodeagent.config.load import load_config
from nodeagent.messages.pb import control_service_pb2
from tests.cli.conftest import Nodeagent
from tests.cli.terminal import typing
from tests.harness.node import Node, daemon_of

GPU = "0000:3b:00.0"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
NO_ANSWER = 69
COMMANDS = (
    ("status", f"{GPU} "),
    ("why " + GPU, "cause: GPU has fallen off the bus (XID_79, SeparateNPU)"),
    ("devices", f"{GPU} "),
    ("events", f"raised          {GPU} XID_79"),
    ("job list --all", "JOB "),
    ("consumers", "follower"),
    ("audit", f"IsolateDevice {GPU}"),
)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A daemon was here, and has seen a fault."""
    node = Node.within(tmp_path_factory.mktemp("stopped"))
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        with Client(str(node.socket)) as client:
            client.ack("follower", next(iter(client.watch(consumer="follower"))).position)
        with Client(str(node.control_socket)) as operator:
            operator.call(control_service_pb2.IsolateDeviceRequest(device=GPU, reason="test"))
    return node


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_that_reads_shows_the_store_of_a_daemon_that_is_down(
    stopped: Node, nodeagent: Nodeagent, command: str, shown: str
) -> None:
    ran = nodeagent(*command.split(), "--config", stopped.configuration)
    assert shown in ran.out
    assert "the daemon is not running" in ran.err
    assert "this is from its store, as of 20" in ran.err
    assert ran.status == NO_ANSWER


def test_a_device_that_the_store_does_not_know_is_refused_as_by_the_daemon(
    stopped: Node, nodeagent: Nodeagent
) -> None:
    ran = nodeagent("why", "npu7", "--config", stopped.configuration)
    assert ran.err.splitlines()[-1] == (f"nodeagent: device: 'npu7' is not known; there are: node, {GPU}")


def test_the_store_does_not_answer_for_a_socket_of_another_daemon(
    stopped: Node, nodeagent: Nodeagent, tmp_path: Path
) -> None:
    ran = nodeagent("status", "--config", stopped.configuration, "--socket", tmp_path / "other.sock")
    assert (ran.status, ran.out, "from its store" in ran.err) == (NO_ANSWER, "", False)


def test_a_daemon_that_reads_its_store_and_does_not_listen_yet_is_reported_as_that(
    stopped: Node, nodeagent: Nodeagent
) -> None:
    state_dir = Path(load_config(stopped.configuration, {}).agent.state_dir)
    held = os.open(state_dir, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = nodeagent("status", "--config", stopped.configuration)
    finally:
        os.close(held)
    does = "has its store open and does not listen: it starts or ends"
    assert ran.err.startswith(f"nodeagent: the daemon, process {os.getpid()}, {does}")
    assert ("is not running" in ran.err, ran.status) == (False, NO_ANSWER)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda file: file.write_bytes(b""),
            "cannot be read as a store of nodeagent: its schema is version 0",
        ),
        (lambda file: file.write_bytes(b"x" * 9999), "cannot be read as a store of nodeagent"),
        (lambda file: file.unlink(), "not there"),
        (lambda file: (file.unlink(), file.mkdir()), "cannot be read: Is a directory"),
    ],
    ids=["empty", "garbage", "missing", "folder"],
)
def test_a_store_that_cannot_be_read_is_reported_after_the_daemon_with_what_repairs_it(
    nodeagent: Nodeagent, tmp_path: Path, damage: Callable[[Path], object], reason: str
) -> None:
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    (state_dir / "store.db").touch()
    damage(state_dir / "store.db")
    configuration = tmp_path / "nodeagent.toml"
    configuration.write_text(f'{configuration.read_text()}state_dir = "{state_dir}"\n')
    ran = nodeagent("status", "--config", configuration)
    first, second, third = ran.err.splitlines()
    assert "the daemon is not running" in first
    assert "the store cannot be read either" in second
    assert reason in second
    assert "a damaged store is repaired by the daemon at its start" in third
    assert (ran.status, ran.out) == (NO_ANSWER, "")


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[tuple[Node, int]]:
    """A daemon that is stopped by a signal, and its process."""
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        pid = daemon_of(node.socket)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield node, pid
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_daemon_that_hangs_is_reported_with_what_the_kernel_shows_and_its_store_is_read(
    hung: tuple[Node, int], nodeagent: Nodeagent
) -> None:
    node, pid = hung
    ran = nodeagent("status", "--timeout", "1.5", "--config", node.configuration)
    state = f"the daemon, process {pid}, was stopped by a signal; kill -CONT lets it go on"
    assert f"nodeagent: no answer yet, waiting up to 1.5 s; {state}\n" in ran.err
    assert f"nodeagent: {state}\n" in ran.err
    assert f"{GPU} " in ran.out
    assert ran.status == NO_ANSWER


def test_a_status_that_is_watched_marks_what_is_old_and_goes_on_with_the_daemon(tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with (
        node.daemon() as stream,
        typing("status", "--watch", "--timeout", "1", "--config", node.configuration) as person,
    ):
        person.until(" events, tables ")
        pid = daemon_of(node.folder / "n.sock")
        os.kill(pid, signal.SIGSTOP)
        try:
            person.until("NO ANSWER, this is of ")
            node.write(XID)
        finally:
            os.kill(pid, signal.SIGCONT)
        stream.until("XID_79")
        person.until("1 unlisted chip isolated")
        person.type("\x03")
        assert person.ended() == 1
