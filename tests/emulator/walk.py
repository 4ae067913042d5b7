"""A daemon on emulated chips, and the commands that documents show, as a reader types them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.control.server import Server
from nodeagent.emulator.node import EmulatedNode
from tests.documents import DOCUMENTS, orders
from tests.harness.configuration import ROOT
from tests.harness.node import Node
from tests.waiting import Lines

SHOWN = {" ".join(words) for document in DOCUMENTS for words in orders(document)}
IMPATIENT = 'poll_interval = "100ms"\ncall_deadline = "3s"\n'


@contextmanager
def emulated(
    tmp_path: Path, description: str = "8x910B", sections: str = ""
) -> Iterator[tuple[Node, EmulatedNode]]:
    """A daemon's configuration, and the chips that it is to find."""
    chips = EmulatedNode.create(tmp_path / "chips", description)
    node = Node.within(tmp_path, f"{configuration_of(chips)}\n{IMPATIENT}{sections}")
    server = Server(chips)
    try:
        yield node, chips
    finally:
        server.close()


def say(node: Node, chips: EmulatedNode, words: str) -> str:
    """What a command prints; the words are those after ``./dev nodeagent``, as a document shows them."""
    assert words in SHOWN, f"no document shows {words!r}"
    done = call(node, chips, words.split())
    done.check_returncode()
    return done.stdout


def call(node: Node, chips: EmulatedNode, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "NODEAGENT_CONFIG": str(node.configuration),
        "NODEAGENT_SOCKET": str(node.socket),
        "NODEAGENT_EMULATOR": str(chips.directory),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "nodeagent.cli", *words]
    return subprocess.run(
        command, env=environment, check=False, stdout=subprocess.PIPE, text=True, timeout=60
    )


def seen(stream: Lines, count: int) -> None:
    """Until so many chips were seen."""
    for _ in range(count):
        stream.until(" ALLOW ")


def without_times(status: str) -> list[str]:
    """What is the same whenever and wherever it is shown."""
    lines = status.removeprefix("$ nodeagent status\n").splitlines()
    lines[0] = re.sub(r"^[^:]+:", "NODE:", lines[0])
    lines[-1] = re.sub(r"\d+ events, tables \w+", "EVENTS", lines[-1])
    times = r"20\S+Z|\b\d+ s\b"
    return [re.sub(" +", " ", re.sub(times, "TIME", line)) for line in lines]
