"""Emulated nodes, and a program written against the vendor's header that uses their library."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodeagent.emulator.node import EmulatedNode
from tests.waiting import Lines

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Program:
    """``as_documented.c``, linked with the library that it finds when it starts."""

    binary: Path

    def run(self, node: EmulatedNode, *words: str) -> list[str]:
        """The lines that it prints; its time-out is the test's."""
        command = [str(self.binary), *words]
        ran = subprocess.run(
            command, env=self._environment(node), stdout=subprocess.PIPE, text=True, check=False
        )
        return ran.stdout.splitlines()

    @contextmanager
    def running(self, node: EmulatedNode, *words: str) -> Iterator[Lines]:
        """Its lines as they come; it is killed in the end."""
        with subprocess.Popen(
            [str(self.binary), *words], env=self._environment(node), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            yield Lines(process.stdout)
            process.kill()

    @staticmethod
    def _environment(node: EmulatedNode) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(node.directory)}


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("program")
    node = EmulatedNode.create(folder / "node", "8x910B")
    binary = folder / "as_documented"
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", str(binary)]
    subprocess.run([*command, str(HERE / "as_documented.c"), str(node.dcmi)], check=True)
    return Program(binary)


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[[str], EmulatedNode]]:
    made: list[EmulatedNode] = []

    def make(description: str) -> EmulatedNode:
        made.append(EmulatedNode.create(tmp_path / f"node{len(made)}", description))
        return made[-1]

    yield make
    for node in made:
        node.release()
