"""On a terminal of 80 columns lines are wrapped and coloured; in a pipe they are whole and plain."""

import re
from pathlib import Path

import pytest

from nodeagent.cli.shared import output
from tests.cli.conftest import Nodeagent
from tests.cli.terminal import COLOUR, on_terminal
from tests.harness.node import Node

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = tmp_path / "kern.log"
    log.write_text(f"[ 3600.500000] {XID}\n")
    return log


def test_events_are_coloured_and_fit_on_a_terminal(log: Path) -> None:
    shown = on_terminal("replay", log)

    assert "\x1b[31mISOLATE\x1b[0m" in shown
    assert COLOUR.sub("", shown).splitlines() == [
        "1970-01-01T01:00:00.500Z raised 0000:3b:00.0 XID_79 ISOLATE RESCHEDULE",
        "    GPU has fallen off the bus (SeparateNPU); once from kmsg",
    ]


def test_who_wants_no_colour_gets_none(log: Path) -> None:
    assert COLOUR.search(on_terminal("replay", log, NO_COLOR="1")) is None


def test_in_a_pipe_an_event_is_one_plain_line(log: Path, nodeagent_process: Nodeagent) -> None:
    assert nodeagent_process("replay", log).out == (
        "1970-01-01T01:00:00.500Z raised          0000:3b:00.0 XID_79 ISOLATE RESCHEDULE"
        " GPU has fallen off the bus (SeparateNPU); once from kmsg\n"
    )


def test_the_status_fits_on_a_terminal(tmp_path: Path) -> None:
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        shown = COLOUR.sub("", on_terminal("status", "--config", node.configuration))

    assert re.search(r"^0000:3b:00\.0 +ISOLATE +\d+ \w+ +is not observed +XID_79 ", shown, re.MULTILINE)
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_a_line_that_is_too_long_for_the_terminal_is_wrapped_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    output.write("npu3:", output.coloured("ISOLATE,"), "and a reason that is long, with-an-id")
    assert capsys.readouterr().out.splitlines() == [
        "npu3: ISOLATE, and a reason",
        "    that is long, with-an-id",
    ]
