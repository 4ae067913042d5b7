"""What a command would write can be shown elsewhere."""

import sys

import pytest

from nodeagent.cli.shared.output import captured, on_terminal, write, write_prose, write_wrapped

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
