"""What the README shows is what works: its client program and its table run here as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

from nodeagent.cli.main import COMMANDS
from nodeagent.core.catalog import Settings
from nodeagent.tables.load import load_catalog
from tests.cli.live import ROOT, Node
from tests.waiting import Lines

README = (ROOT / "README.md").read_text()
XID = "NVRM: Xid (PCI:0000:3b:00): {xid}, pid=1234, name=python, and so on."


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def block(language: str) -> str:
    (found,) = blocks(language)
    return found


class Subscriber:
    """The program of the README, started as a newcomer would."""

    def __init__(self, folder: Path, node: Node) -> None:
        program = folder / "subscriber.py"
        program.write_text(block("python"))
        self._process = subprocess.Popen(
            [sys.executable, program, folder / "position"],
            env={**os.environ, "NODEAGENT_SOCKET": str(node.socket), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.complaints = Lines(self._process.stderr)
        self._lines = Lines(self._process.stdout)

    def __enter__(self) -> Lines:
        return self._lines

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=30)


def test_the_client_program_sees_the_state_then_events_and_goes_on_where_it_was(tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with node.daemon():
        with Subscriber(tmp_path, node) as lines:
            assert lines.until("all").endswith(": 'ALLOW'}\n")
            node.write(XID.format(xid=79))
            first = lines.until("XID_79").split()
        node.write(XID.format(xid=48))
        with Subscriber(tmp_path, node) as lines:
            second = lines.until(" ").split()

    assert first[1:] == ["raised", "0000:3b:00.0", "XID_79", "ISOLATE", "RESCHEDULE"]
    # Killed between an event and its position it is told that event again: at least once, never not.
    assert int(second[0]) in (int(first[0]), int(first[0]) + 1)


def test_the_client_program_says_so_where_no_daemon_answers(tmp_path: Path) -> None:
    subscriber = Subscriber(tmp_path, Node.within(tmp_path))
    with subscriber:
        words = subscriber.complaints.until("nodeagent")

    assert words.startswith("nodeagent does not answer, waiting for it: UNAVAILABLE: ")
    assert str(tmp_path / "n.sock") in words


def test_the_client_program_has_twenty_lines() -> None:
    assert len(block("python").splitlines()) <= 20


def test_the_tables_are_sound_over_the_shipped_ones(tmp_path: Path) -> None:
    for number, table in enumerate(blocks("toml")):
        (tmp_path / f"{number}.toml").write_text(table)

    loaded = load_catalog([ROOT / "fault_codes", tmp_path], Settings())

    assert loaded.warnings == ()
    assert loaded.catalog.rows["XID_177"].name == "Clocks limited for a while"
    assert "ACME_DEAD" in {pattern.id for pattern in loaded.catalog.patterns}


def test_every_command_that_is_shown_exists() -> None:
    code = " ".join(re.findall(r"^```sh\n.*?^```$|`[^`\n]+`", README, flags=re.MULTILINE | re.DOTALL))
    shown = set(re.findall(r"\bnodeagent ([a-z]+)", code))

    assert {"status", "events", "replay"} <= shown
    assert shown - set(COMMANDS) == set()


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"\]\(([^)]+)\)", README)

    assert [name for name in named if not (ROOT / name).exists()] == []
