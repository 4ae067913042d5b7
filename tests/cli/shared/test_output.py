"""What a command would write can be shown elsewhere; an output that fails is one clear line."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from nodeagent.cli.shared import output
from nodeagent.cli.shared.output import (
    captured,
    draw,
    on_one_screen,
    on_terminal,
    write,
    write_prose,
    write_wrapped,
)

COMMAND = (sys.executable, "-m", "nodeagent.cli")

LONG = "ISOLATE " + "word " * 40


def test_lines_for_elsewhere_are_plain_and_whole_also_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with captured(is_plain=True) as lines:
        write_wrapped(LONG)
        write_prose("do:", f"{LONG}\x1b[31m")
    assert lines == [LONG.rstrip(), f"  do: {' '.join(LONG.split())} \\x1b[31m"]
    assert on_terminal()
    write("after")
    assert capsys.readouterr().out == "after\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_output_that_cannot_be_written_is_one_clear_line(form: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "version", "-o", form], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    reason = "nodeagent: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, reason)


def test_a_command_without_standard_streams_does_what_it_does_with_them(tmp_path: Path) -> None:
    status = (*COMMAND, "status", "--socket", str(tmp_path / "none.sock"))
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *status], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 69
    assert done.stderr.startswith("nodeagent: the daemon is not running: no socket ")


def test_what_is_drawn_again_begins_with_its_first_line_on_a_low_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("LINES", "5")
    draw([f"line {each}" for each in range(6)])
    assert capsys.readouterr().out.splitlines() == [
        "line 0",
        "line 1",
        "line 2",
        "3 more lines: enlarge the terminal",
    ]
    draw([f"line {each}" for each in range(4)])
    assert capsys.readouterr().out.splitlines() == ["line 0", "line 1", "line 2", "line 3"]


@pytest.mark.parametrize("terminal", ["", "dumb"])
def test_a_terminal_that_cannot_move_its_cursor_gets_no_pager(
    terminal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paged: list[str] = []
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(click, "echo_via_pager", lambda text, **_: paged.append(text))
    monkeypatch.setenv("LINES", "2")
    monkeypatch.setenv("TERM", terminal)
    with on_one_screen():
        write("one")
        write("two")
    assert (capsys.readouterr().out, paged) == ("one\ntwo\n", [])
