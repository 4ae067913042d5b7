"""What a hostile node, reporter or job says reaches no terminal as it is: each command, on each way out."""

import json
import os
import pty
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nodeagent.cli.shared.output import json_line
from nodeagent.cli.shared.printable import printable, printable_json
from nodeagent.tables.export import to_toml
from tests.cli.conftest import Nodeagent
from tests.cli.shared import hostile
from tests.core.build import row

OWN_COLOURS = re.compile(r"\x1b\[(?:0|1|31|32|33|35)m")
"""Those of ``nodeagent.cli.shared.output``."""

ASKING = (
    ("status",),
    ("status", "--all"),
    ("scan",),
    ("events",),
    ("devices",),
    ("why", "npu0"),
    ("explain", "XID_79"),
    ("consumers",),
    ("audit",),
    ("job", "list"),
)
ORDERING = (
    ("isolate", "npu0", "--reason", "r"),
    ("release", "npu0", "--reason", "r"),
    ("reset", "npu0", "--reason", "r"),
    ("reset", "npu0", "--reason", "r", "--dry-run"),
    ("approve", "a#1"),
    ("quiesce", "--for", "1h", "--reason", "r"),
    ("resume", "--reason", "r"),
    ("forget", "npu0", "--reason", "r"),
    ("claim", "npu0", "--job", "j"),
    ("report", "CODE", "npu0"),
    ("inject", "npu0", "CODE"),
    ("tables", "reload"),
    ("tables", "reload", "--dry-run"),
    ("job", "stop", "j", "--reason", "r"),
    ("job", "rerun", "j", "--reason", "r"),
)


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "h.sock"
    with hostile.daemon(path):
        yield path


@pytest.fixture
def refusing(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "r.sock"
    with hostile.daemon(path, refuses=True):
        yield path


def unprintable(text: str) -> list[str]:
    """The lines in which something is left that a terminal obeys or does not show."""
    return [line for line in text.split("\n") if printable(line) != line]


@pytest.mark.parametrize("words", [*ASKING, *ORDERING], ids=" ".join)
def test_in_a_pipe_all_is_printable_and_a_field_stays_on_its_line(
    socket: Path, nodeagent: Nodeagent, words: Sequence[str]
) -> None:
    ran = nodeagent(*words, "--socket", socket)
    assert unprintable(ran.out) == []
    assert unprintable(ran.err) == []
    assert "Traceback" not in ran.err
    assert ran.out or ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("node: ALLOW")] == []


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_json_is_printable_and_means_what_was_reported(
    socket: Path, nodeagent: Nodeagent, words: Sequence[str]
) -> None:
    ran = nodeagent(*words, "--socket", socket, "-o", "json")
    assert unprintable(ran.out) == []
    assert unprintable(ran.err) == []
    said = json.dumps([json.loads(line) for line in ran.out.splitlines()], ensure_ascii=True)
    assert json.dumps(hostile.TEXT)[1:-1] in said


@pytest.mark.parametrize("words", [*ASKING, *ORDERING], ids=" ".join)
def test_a_refusal_is_printable(refusing: Path, nodeagent: Nodeagent, words: Sequence[str]) -> None:
    ran = nodeagent(*words, "--socket", refusing)
    assert (ran.status != 0, unprintable(ran.err), unprintable(ran.out)) == (True, [], [])


def on_terminal(*words: str | Path) -> str:
    """All that a command writes to a terminal, which standard error is too."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb") as screen:
        process = subprocess.Popen(
            [sys.executable, "-m", "nodeagent.cli", *map(str, words)],
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(theirs)
        written = b""
        try:
            while piece := screen.read1():
                written += piece
        except OSError:  # EIO: the other end is closed
            pass
        process.wait(timeout=30)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "words",
    [("status", "--all"), ("why", "npu0"), ("events",), ("devices",), ("audit",), ("job", "list")],
    ids=" ".join,
)
def test_on_a_terminal_nothing_but_our_own_colours_is_obeyed(socket: Path, words: Sequence[str]) -> None:
    shown = on_terminal(*words, "--socket", socket)
    assert OWN_COLOURS.search(shown) is not None or words[0] in ("audit", "devices", "job")
    assert unprintable(OWN_COLOURS.sub("", shown)) == []
    assert "\\x1b]52;c;" in re.sub(r"\n *", "", shown)


@pytest.mark.parametrize("form", [(), ("-o", "json")], ids=["text", "json"])
def test_a_followed_node_writes_no_clipboard(socket: Path, tmp_path: Path, form: Sequence[str]) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text(f"gpu-1 {socket}\n")
    shown = on_terminal("fleet", "--nodes", nodes, "--once", "--all", *form)
    assert "gpu-1" in shown
    assert "]52;c;" in re.sub(r"\n *", "", shown)
    assert unprintable(OWN_COLOURS.sub("", shown)) == []


def test_the_lines_of_followed_nodes_are_printable(socket: Path, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text(f"gpu-1 {socket}\n")
    with subprocess.Popen(
        [sys.executable, "-m", "nodeagent.cli", "fleet", "--nodes", nodes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        first = [process.stdout.readline().decode() for _ in range(4)]
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert all("gpu-1" in line for line in first)
    assert "\\x1b]52;c;" in "".join(first)
    assert unprintable("".join(first)) == []
    assert unprintable(err.decode()) == []


@pytest.mark.parametrize("hazard", hostile.HAZARDS, ids=ascii)
def test_each_hazard_is_escaped_and_json_keeps_it(hazard: str) -> None:
    assert printable(f"a{hazard}b").isprintable()
    assert printable(printable(hazard)) == printable(hazard)
    line = json_line({"key": hazard}).decode()
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line) == {"key": hazard}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢字 שלום", "plain é 漢字 שלום"),
        ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\u202e\u2066", r"\u202e\u2066"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\U000e0041"),
        ("\N{NO-BREAK SPACE}", r"\xa0"),
    ],
)
def test_what_can_be_shown_is_left_and_all_else_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_json_of_half_a_surrogate_pair_is_json() -> None:
    assert json_line({"file": "\udcff\x1b", "level": 3}) == b'{"file":"\\udcff\\u001b","level":3}\n'
    assert printable_json('"\U000e0041"') == r'"\udb40\udc41"'


def test_a_wrong_command_line_is_printable(nodeagent_process: Nodeagent) -> None:
    for words in ((f"x{hostile.CLIPBOARD}",), ("why", f"--{hostile.TITLE}"), ("job", f"y{hostile.TITLE}")):
        ran = nodeagent_process(*words)
        assert (ran.status, unprintable(ran.err)) == (2, [])


@pytest.mark.parametrize(
    "words",
    [
        ("status", "{}"),
        ("config", "check", "{}"),
        ("explain", "XID_79", "--config={}"),
        ("replay", "{}"),
        ("report", "--file", "{}"),
        ("fleet", "--nodes", "{}"),
        ("status", "--socket", "{}"),
        ("job", "replay", "{}"),
        ("job", "run", "--policy", "{}", "--", "true"),
        ("job", "run", "--state={}/x", "--", "true"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("ends_a_line", ["\n", "\r\n", "\x85", "\u2028"], ids=ascii)
def test_a_word_of_the_command_line_begins_no_line(
    tmp_path: Path, nodeagent_process: Nodeagent, words: Sequence[str], ends_a_line: str
) -> None:
    """Whoever names a file would else have a line of his own, which looks like one of ours."""
    hostile_name = tmp_path / f"x{ends_a_line}node: all is well"
    hostile_name.write_bytes(b"\x8b")
    ran = nodeagent_process(*(word.format(hostile_name) for word in words))
    assert ran.status != 0
    assert "all is well" in ran.out + ran.err
    assert not re.search(r"^(nodeagent(-job)?: )?\s*node: all", ran.out + ran.err, re.MULTILINE)


@pytest.mark.parametrize("hazard", hostile.HAZARDS, ids=ascii)
def test_a_table_that_is_written_out_is_printable_and_reads_back(hazard: str) -> None:
    text = to_toml([row("A1", description=f"a{hazard}b")], [])
    assert all(line.isprintable() for line in text.split("\n"))
    assert tomllib.loads(text)["codes"]["A1"]["description"] == f"a{hazard}b"
