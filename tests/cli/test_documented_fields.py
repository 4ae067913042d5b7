"""The fields that docs/commands.md lists are those that the commands print, against a real daemon."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest
from click.testing import CliRunner

from nodeagent.cli.main import main
from nodeagent.client import Client
from tests.cli.supervising import supervising
from tests.harness.configuration import ROOT
from tests.harness.node import Node

ROW: Final = re.compile(r"^\| (`[a-z `,]+`) \| `([a-z_ ]+)` \|$", flags=re.MULTILINE)
JOB: Final = f"pid:{os.getpid()}"
DEVICE: Final = "0000:3b:00.0"
XID: Final = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
CALLED: Final[Mapping[str, Sequence[str]]] = {
    "status": (),
    "scan": (),
    "devices": (),
    "why": (DEVICE,),
    "explain": ("XID_79",),
    "events": (),
    "isolate": (DEVICE, "--reason", "test"),
    "release": (DEVICE, "--reason", "test", "--force"),
    "quiesce": ("--reason", "test"),
    "resume": (),
    "report": ("110001010", "node", "--sender", "CCAE"),
    "claim": ("--job", "test:1", "--left"),
    "reset": (DEVICE, "--dry-run"),
    "audit": (),
    "consumers": (),
    "consumers rewind": ("test", "--to", "0"),
    "consumers delete": ("test",),
    "tables check": (),
    "version": (),
    "config check": (),
    "config show": (),
    "job list": (),
    "job show": (JOB,),
    "job stop": (JOB, "--reason", "test"),
    "job rerun": (JOB, "--reason", "test"),
    "forget": (DEVICE, "--reason", "test", "--force"),
}
"""In an order in which each has something to print. ``approve`` needs a proposal: see test_orders_actions,
``job replay`` a file: see test_job_replay, ``slurm health`` a Slurm: see tests/slurm/test_health, and
``rebaseline`` a GPU: see tests/stories/test_gpu_links_kept.
"""


def documented() -> dict[str, set[str]]:
    rows = ROW.findall((ROOT / "docs" / "commands.md").read_text())
    return {
        command: set(fields.split())
        for commands, fields in rows
        for command in re.findall(r"`([^`]+)`", commands)
    }


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A chip that is isolated, and a consumer."""
    node = Node.within(tmp_path_factory.mktemp("fields"))
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        with Client(str(node.socket)) as client:
            client.ack("test", next(iter(client.watch(consumer="test"))).position)
        with supervising(node.socket.with_name("jobs.sock")):
            yield node


def printed(node: Node, words: Sequence[str]) -> Mapping[str, Any]:
    """The first object that the command prints; the exit status is not looked at."""
    done = CliRunner().invoke(main, [*words, "-o", "json"], env={"NODEAGENT_CONFIG": str(node.configuration)})
    said: Mapping[str, Any] = json.loads(done.stdout.splitlines()[0])
    return said


@pytest.mark.parametrize("command", CALLED)
def test_a_command_prints_the_fields_that_are_listed(node: Node, command: str) -> None:
    assert set(printed(node, [*command.split(), *CALLED[command]])) == documented()[command]


def test_every_row_is_called_or_shares_one() -> None:
    elsewhere = {"replay", "job replay", "approve", "slurm health", "rebaseline"}
    assert documented().keys() - CALLED.keys() == elsewhere
