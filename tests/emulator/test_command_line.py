"""``nodeagent emulator``: the emulator as a person starts it, and its control socket as a program uses it."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from nodeagent.cli.local.emulator import command
from nodeagent.emulator.control.server import SOCKET, RefusedByEmulator, ask
from nodeagent.emulator.node import EmulatedNode
from tests.emulator.served import say, serving
from tests.harness.node import running


@pytest.fixture
def served(tmp_path: Path) -> Iterator[EmulatedNode]:
    with serving(tmp_path / "node", "16xA3") as node:
        yield node


def refusal(node: EmulatedNode, **request: Any) -> str:
    with pytest.raises(RefusedByEmulator) as refused:
        ask(node.directory, request)
    return str(refused.value)


def test_start_prints_the_configuration_and_ends_with_a_process(tmp_path: Path) -> None:
    folder = tmp_path / "node"
    with running("emulator", "start", "8x910B", "--directory", folder) as lines:
        lines.until("emulating 8x910B in")
        lines.until("[drivers.ascend]")
        assert lines.readline() == f'library = "{folder}/libdcmi.so"\n'
        assert lines.readline() == f'sysfs = "{folder}/sys"\n'
        assert ask(folder, {"do": "show"})["devices"][7]["device"] == "npu7"

    assert not (folder / SOCKET).exists()


def test_a_wrong_description_leaves_the_node_that_is_emulated_there_alone(served: EmulatedNode) -> None:
    before = sorted(each.name for each in served.directory.iterdir())
    refused = CliRunner().invoke(command, ["start", "8x911", "--directory", str(served.directory)])
    assert refused.exit_code == 1
    assert sorted(each.name for each in served.directory.iterdir()) == before


def test_an_unknown_product_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    refused = CliRunner().invoke(command, ["start", "8x911", "--directory", str(tmp_path)])

    assert refused.exit_code == 1
    assert (
        "nodeagent: '8x911': such as 8x910B is right, a count and a product out of 910B, 800IA2"
        in refused.output
    )


def test_what_another_user_puts_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """In /tmp anybody may; every ``lib*.so*`` of the folder is removed before the node is made."""
    precious = tmp_path / "usr-lib"
    precious.mkdir()
    (precious / "libc.so.6").write_text("precious")
    planted = tmp_path / "emulator"
    planted.symlink_to(precious)

    refused = CliRunner().invoke(command, ["start", "8x910B", "--directory", str(planted)])

    assert refused.exit_code == 1
    assert f"nodeagent: {planted} is no directory; remove it, or choose another place" in refused.output
    assert [path.name for path in precious.iterdir()] == ["libc.so.6"]


def test_without_an_emulator_the_commands_say_how_to_start_one(tmp_path: Path) -> None:
    failed = CliRunner().invoke(command, ["show", "--directory", str(tmp_path)])

    assert (failed.exit_code, "nodeagent emulator start" in failed.output) == (69, True)


def test_a_fault_is_raised_shown_and_cleared(served: EmulatedNode) -> None:
    assert say(served, "raise", "npu3", "80E01801", "--severity", "3").exit_code == 0
    shown = json.loads(say(served, "show", "-o", "json").output)
    assert [device["codes"] for device in shown["devices"][2:4]] == [[], ["80E01801"]]

    assert say(served, "clear", "npu3", "0x80e01801").exit_code == 0
    assert served.codes("npu3") == []


def test_a_port_of_a_switch_fails(served: EmulatedNode) -> None:
    say(served, "raise", "ub2/17", "08520003", "--peer", "l2")
    (fault,) = json.loads(say(served, "show", "-o", "json").output)["fabric"]

    assert (fault["event_type"], fault["chip"], fault["port"], fault["peer_device"]) == (0x08520003, 2, 17, 2)


@pytest.mark.parametrize("name", sorted(command.commands))
def test_every_option_says_what_it_does(name: str) -> None:
    options = [each for each in command.commands[name].params if isinstance(each, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_calls_answer_and_go_on_when_they_are_released(served: EmulatedNode) -> None:
    assert say(served, "answer", "-8006", "--device", "npu2", "-o", "json").output == '{"number":0}\n'
    assert (served.state.overrides[0].answer, served.state.overrides[0].chip) == (-8006, 2)

    say(served, "release")
    assert served.state.overrides[0].what == 0


def test_a_process_holds_a_chip_and_lets_go(served: EmulatedNode) -> None:
    say(served, "hold", "npu1", "4711", "--memory-mb", "64")
    chip = served.chip("npu1")
    assert (chip.process_count, chip.process_ids[0], chip.process_memory_bytes[0]) == (1, 4711, 64 << 20)

    say(served, "let-go", "npu1")
    assert chip.process_count == 0


def test_fields_are_set_by_name_and_place(served: EmulatedNode) -> None:
    say(served, "set", "npu0", "temperature_celsius", "97")
    say(served, "set", "npu0", "utilization_percent[2]", "255")
    say(served, "set", "npu0", "serial", "ABC")
    say(served, "set", "node", "ecc_words", "9")

    chip = served.chip("npu0")
    assert (chip.temperature_celsius, chip.utilization_percent[2], chip.serial) == (97, 255, b"ABC")
    assert served.state.node.ecc_words == 9


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"do": "raise", "device": "npu99", "code": "80E01801"}, "npu99: this node has npu0, npu1"),
        (
            {"do": "raise", "device": "npu1", "code": "zz"},
            "code: hexadecimal digits such as 80E01801 are right",
        ),
        ({"do": "raise", "device": "npu1", "code": 5}, "Expected `str`, got `int` - at `$.code`"),
        ({"do": "raise", "device": "npu1"}, "missing required field `code`"),
        ({"do": "fly"}, "Invalid value 'fly' - at `$.do`"),
        ({"do": "drop", "device": "npu1", "loud": True}, "unknown field `loud`"),
        ({"do": "set", "device": "npu1", "field": "temperature", "value": "5"}, "no such field; there is "),
        (
            {"do": "set", "device": "npu1", "field": "ecc_double[9]", "value": "5"},
            "a place from 0 to 3 is needed",
        ),
        (
            {"do": "set", "device": "npu1", "field": "temperature_celsius", "value": "warm"},
            "temperature_celsius: a whole number of 32 bits is right, not 'warm'",
        ),
        (
            {"do": "hang", "function": "dcmi_get_device_healht"},
            "dcmi_get_device_healht: no library of this node has such a function",
        ),
        ({"do": "crash", "function": "dcmj_*"}, "dcmj_*: no library of this node has such a function"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(
    served: EmulatedNode, request_: dict[str, Any], reason: str
) -> None:
    assert reason in refusal(served, **request_)


def test_a_line_that_is_no_json_gets_an_answer_and_the_next_is_served(served: EmulatedNode) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(served.directory / SOCKET))
        connection.sendall(b'nonsense\n{"do": "drop", "device": "npu6"}\n')
        with connection.makefile("rb") as lines:
            answers = [json.loads(lines.readline()), json.loads(lines.readline())]

    assert "malformed" in answers[0]["error"]
    assert (answers[1], served.chip("npu6").ready) == ({"ok": {}}, 0)
