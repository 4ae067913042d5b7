"""The documents' way through the emulator, command by command, with a real daemon on the emulated chips."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodeagent.cli.local.emulator import command, configuration_of
from nodeagent.emulator.control.server import Server
from nodeagent.emulator.node import EmulatedNode
from tests.documents import DOCUMENTS, block, orders
from tests.harness.configuration import ROOT
from tests.harness.node import Node
from tests.waiting import Lines, wait_until

SHOWN = {" ".join(words) for document in DOCUMENTS for words in orders(document)}
IMPATIENT = 'poll_interval = "100ms"\ncall_deadline = "3s"\n'


@contextmanager
def emulated(tmp_path: Path, description: str = "8x910B") -> Iterator[tuple[Node, EmulatedNode]]:
    """A daemon's configuration, and the chips that it is to find."""
    chips = EmulatedNode.create(tmp_path / "chips", description)
    node = Node.within(tmp_path, f"{configuration_of(chips)}\n{IMPATIENT}")
    server = Server(chips)
    try:
        yield node, chips
    finally:
        server.close()


def say(node: Node, chips: EmulatedNode, words: str) -> str:
    """What a command prints; the words are those after ``./dev nodeagent``."""
    assert words in SHOWN, f"no document shows {words!r}"
    environment = {
        **os.environ,
        "NODEAGENT_SOCKET": str(node.socket),
        "NODEAGENT_EMULATOR": str(chips.directory),
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, "-m", "nodeagent.cli", *words.split()],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def seen(stream: Lines, count: int) -> None:
    """Until so many chips were seen."""
    for _ in range(count):
        stream.until(" ALLOW ")


def test_a_fault_comes_and_goes_and_a_hung_chip_is_unknown_alone(tmp_path: Path) -> None:
    with emulated(tmp_path) as (node, chips), node.daemon() as stream:
        seen(stream, 9)

        say(node, chips, "emulator raise npu3 80E01801")
        assert "80E01801" in stream.until(" raised ")
        assert "npu3: ISOLATE, handling RESCHEDULE" in say(node, chips, "why npu3")
        say(node, chips, "emulator clear npu3 80E01801")
        assert "npu3" in stream.until(" cleared ")

        say(node, chips, "emulator hang --device npu5")
        assert "npu5" in stream.until("driver_unresponsive")
        status = say(node, chips, "status")
        verdicts = dict(re.findall(r"^(npu\d) +([A-Z]+) ", status, flags=re.MULTILINE))
        assert verdicts == {"npu5": "UNKNOWN"}
        assert status.splitlines()[0].endswith(": 7 of 8 NPUs are well, 1 unknown")
        assert "\n7 other devices are well; --all shows each\n" in status

        say(node, chips, "emulator release")
        assert "npu5" in stream.until(" cleared ")


def test_a_chip_drops_and_a_switch_breaks_on_an_emulated_a3(tmp_path: Path) -> None:
    with emulated(tmp_path, "16xA3") as (node, chips), node.daemon() as stream:
        seen(stream, 1 + 16 + 7)

        say(node, chips, "emulator drop npu1")
        dropped = stream.until("40F84E00")
        assert ("npu1" in dropped, "ISOLATE" in dropped) == (True, True)
        say(node, chips, "emulator return npu1")
        assert "npu1" in stream.until(" cleared ")

        say(node, chips, "emulator raise ub2/5 08520003 --peer l2")
        assert "NotHandleFault" in stream.until("[0x08520003,na,L2,na]")
        say(node, chips, "emulator raise ub0 00f103b0 --sub-type 155907")
        assert "ub0" in stream.until("[0x00f103b0,155907,na,na]")
        assert " node         verdict_changed ISOLATE " in stream.until(" verdict_changed ")
        say(node, chips, "emulator clear ub0 00f103b0 --sub-type 155907")
        assert " node         verdict_changed ALLOW " in stream.until(" verdict_changed ")


def test_the_status_in_the_readme_is_what_a_daemon_shows(tmp_path: Path) -> None:
    with emulated(tmp_path) as (node, chips), node.daemon() as stream:
        seen(stream, 9)
        say(node, chips, "emulator raise npu3 80E01801")
        stream.until(" action_proposed ")
        say(node, chips, "emulator hang --device npu5")
        stream.until(" source_lost ")

        wait_until(lambda: "kmsg does not observe" not in say(node, chips, "status"))
        assert without_times(say(node, chips, "status")) == without_times(block("text", ROOT / "README.md"))


def without_times(status: str) -> list[str]:
    """What is the same whenever and wherever it is shown."""
    lines = status.removeprefix("$ nodeagent status\n").splitlines()
    lines[0] = re.sub(r"^[^:]+:", "NODE:", lines[0])
    lines[-1] = re.sub(r"\d+ events, tables \w+", "EVENTS", lines[-1])
    times = r"20\S+Z|\b\d+ s\b"
    return [re.sub(" +", " ", re.sub(times, "TIME", line)) for line in lines]


def test_every_command_of_the_emulator_that_is_shown_exists() -> None:
    shown = {words.split()[1] for words in SHOWN if words.startswith("emulator ")} - {"-h"}

    assert {"start", "raise", "hang"} <= shown <= set(command.commands)
