"""The documents' way through the emulator, command by command, with a real daemon on the emulated chips."""

import re
from pathlib import Path

from nodeagent.cli.local.emulator import command
from tests.documents import block
from tests.emulator.walk import SHOWN, emulated, say, seen, without_times
from tests.harness.configuration import ROOT
from tests.waiting import wait_until


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


def test_every_command_of_the_emulator_that_is_shown_exists() -> None:
    shown = {words.split()[1] for words in SHOWN if words.startswith("emulator ")} - {"-h"}

    assert {"start", "raise", "hang"} <= shown <= set(command.commands)
