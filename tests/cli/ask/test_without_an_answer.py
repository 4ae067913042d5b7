"""Commands that read where no daemon answers: its store, as of when, and what is known of the daemon."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.client import Client
from nodeagent.messages.pb import control_service_pb2
from tests.cli.conftest import Nodeagent
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
