"""Resets on a machine that systemd booted: each is a unit of its own, which outlives the daemon."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.machine import KMSG, Machine, booted, until
from tests.e2e.tree import unpack_tree

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

UNIT = "nodeagent.service"
PATH = "/etc/nodeagent-test.toml"
CODE = "80A18008"
DROP_IN = f"""
[Service]
Environment=NODEAGENT_CONFIG={PATH}
DeviceAllow={KMSG} r
"""
CONFIGURATION = f"""
[drivers.kmsg]
path = "{KMSG}"

[drivers.ascend]
library = "/var/lib/nodeagent/emulator/libdcmi.so"
sysfs = "/var/lib/nodeagent/emulator/sys"

[reset]
mode = "on"
announce = "5s"
cool_down = "0s"
trust_process_list = true
allow_volatile_store = true
after = [["sleep", "8"]]
"""


@pytest.fixture(scope="module")
def node(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """With the package installed, and eight emulated NPUs that may be reset."""
    root = tmp_path_factory.mktemp("node") / "tree"
    unpack_tree(root)
    with booted(root) as machine:
        machine.write(f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        machine.write(PATH, CONFIGURATION)
        machine.write("/root/nodeagent.deb", package.read_bytes())
        machine.run("dpkg", "--install", "/root/nodeagent.deb")
        machine.run("systemd-run", "--unit=emulator", "nodeagent", "emulator", "start", "8x910B")
        until(
            lambda: machine.run("nodeagent", "emulator", "show", check=False).returncode,
            lambda status: status == 0,
        )
        machine.run("systemctl", "restart", UNIT)
        until(lambda: machine.read("nodeagent", "devices"), lambda devices: devices.count("npu") == 8)
        yield machine
        machine.run("systemctl", "stop", "emulator", UNIT)


def actions(node: Machine) -> list[tuple[str, str]]:
    """Device and words of the events about resets that ended."""
    told = node.read("nodeagent", "events", "--after", "0", "--kind", "action_finished", "-o", "json")
    return [(event["device"], event["why"]) for event in map(json.loads, told.splitlines())]


def calls(node: Machine) -> int:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "emulator", "show", "-o", "json"))
    return int(shown["calls"].get("dcmi_set_device_reset", 0))


def unit_of_a_reset(node: Machine) -> str:
    """The one that runs now, "" if none does."""
    listed = node.read("systemctl", "list-units", "--plain", "--no-legend", "nodeagent-reset@*").split()
    return listed[0] if listed else ""


def break_and_begin(node: Machine, device: str) -> str:
    """Breaks an NPU and waits for the unit of its reset."""
    node.run("nodeagent", "emulator", "raise", device, CODE)
    return until(lambda: unit_of_a_reset(node), bool)


def test_the_unit_of_a_reset_is_sound(node: Machine) -> None:
    assert node.run("systemd-analyze", "verify", "nodeagent-reset@x.service").stderr == ""


def test_a_reset_is_a_unit_of_its_own(node: Machine) -> None:
    unit = break_and_begin(node, "npu3")
    assert node.property_of(unit, "ControlGroup").endswith(unit)
    told = until(lambda: actions(node), bool)
    assert told == [("npu3", "done: verified by a poll of every member")]
    assert calls(node) == 1
    until(lambda: unit_of_a_reset(node), lambda unit: unit == "")
    assert "reset in-band" in node.read("journalctl", "--unit", unit, "--no-pager")


def test_one_goes_on_while_the_package_is_upgraded_and_its_result_is_adopted(node: Machine) -> None:
    before = node.property_of(UNIT, "MainPID")
    break_and_begin(node, "npu5")
    until(lambda: calls(node), lambda number: number == 2)
    upgraded = node.run("dpkg", "--install", "/root/nodeagent.deb")
    assert node.property_of(UNIT, "MainPID") != before
    assert "quiesced for dpkg, until " in upgraded.stderr
    assert "nodeagent: waiting for a reset that is under way: /run/nodeagent/reset/" in upgraded.stderr
    assert json.loads(node.read("nodeagent", "status", "-o", "json"))["holds"] == []
    told = until(lambda: actions(node), lambda told: len(told) == 2)
    assert told[1] == ("npu5", "done: verified by a poll of every member")
    assert calls(node) == 2


def test_one_goes_on_while_the_daemon_is_killed_and_down(node: Machine) -> None:
    break_and_begin(node, "npu6")
    node.run("systemctl", "kill", "--signal=KILL", UNIT)
    node.run("systemctl", "stop", UNIT)
    until(lambda: unit_of_a_reset(node), lambda unit: unit == "")
    node.run("systemctl", "start", UNIT)
    told = until(lambda: actions(node), lambda told: len(told) == 3)
    assert told[2] == ("npu6", "done: verified by a poll of every member")
    assert calls(node) == 3
