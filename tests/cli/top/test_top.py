"""``nodeagent top`` on a terminal, with a real daemon: what happens, keys, and how it ends."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.node import EmulatedNode
from tests.cli.conftest import Nodeagent
from tests.cli.terminal import typing
from tests.harness.node import Node, daemon_of

LEFT = "\x1b[?1049l"
"""The screen of the shell is back (xterm, "alternate screen")."""


@pytest.fixture
def chips(tmp_path: Path) -> Iterator[tuple[EmulatedNode, Node]]:
    chips = EmulatedNode.create(tmp_path / "chips", "8x910B")
    node = Node.within(
        tmp_path, f'{configuration_of(chips)}\npoll_interval = "100ms"\n[reset]\nmode = "off"\n'
    )
    with chips, node.daemon() as stream:
        for _ in range(9):
            stream.until(" ALLOW ")
        yield chips, node


def test_a_fault_appears_by_itself_and_the_terminal_is_given_back(chips: tuple[EmulatedNode, Node]) -> None:
    emulated, node = chips
    daemon = daemon_of(node.folder / "n.sock")
    # A size that the shell has exported does not follow the terminal; ASCII lacks the ellipsis.
    odd = {"COLUMNS": "40", "LINES": "0", "PYTHONIOENCODING": "ascii"}
    with typing("top", "--config", node.configuration, **odd) as person:
        before = person.modes
        assert "8 of 8 NPUs are well" in person.until("q quit")
        emulated.raise_code("npu3", 0x80E01801, severity=2)
        assert re.search(r"> npu3 +ISOLATE +41 C +94 W ", person.until("80E01801 Multi-bit"))

        person.type("\r")
        assert person.until("cause:").index("npu3: ISOLATE") < person.until("do:").index("do:")
        person.type("e")
        person.until("raised npu3 80E01801")
        person.type("\x1b")
        person.until("> npu3")
        person.resize(160, 30)
        person.until("NEXT")

        os.kill(daemon, signal.SIGSTOP)
        try:
            person.type("n")
            person.until("NO ANSWER, this is of ")
        finally:
            os.kill(daemon, signal.SIGCONT)
        person.type("v")
        person.until("by verdict, the worst first, ")

        person.type("q")
        assert person.ended() == 0
        assert LEFT in person.written
        assert person.modes == before

    with typing("top", "--config", node.configuration, NO_COLOR="1") as person:
        assert "ISOLATE" in person.until("q quit")
        assert re.search(r"\x1b\[[0-9;]*3[0-7]", person.written) is None
        person.type("\x03")
        assert person.ended() == 130
        assert (LEFT in person.written, person.modes == before) == (True, True)


def test_without_a_terminal_it_names_what_to_use(nodeagent: Nodeagent) -> None:
    ran = nodeagent("top")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(
        "nodeagent: top needs a terminal for its input and output, and $TERM to name it; "
    )
    assert '"nodeagent status --watch"' in ran.err
