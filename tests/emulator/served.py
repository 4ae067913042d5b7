"""An emulated node with its control socket, and its commands as a person types them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from nodeagent.cli.local.emulator import command
from nodeagent.emulator.control.server import Server
from nodeagent.emulator.node import EmulatedNode


@contextmanager
def serving(folder: Path, description: str) -> Iterator[EmulatedNode]:
    node = EmulatedNode.create(folder, description)
    server = Server(node)
    yield node
    server.close()


def say(node: EmulatedNode, *words: str) -> Result:
    return CliRunner().invoke(command, [words[0], "--directory", str(node.directory), *words[1:]])
