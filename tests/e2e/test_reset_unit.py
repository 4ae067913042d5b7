"""Resets on a machine that systemd booted: each is a unit of its own, which outlives the daemon."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.machine import Machine, booted, until, write
from tests.e2e.resetting_node import (
    CONFIGURATION,
    CONFIGURED,
    DROP_IN,
    PATH,
    UNIT,
    actions,
    break_and_begin,
    calls,
    ended,
    observed,
    recorded,
    reset_until_recorded,
    unit_of_a_reset,
)
from tests.e2e.tree import laid_over, switch

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]
INTRUDER = """
import json, os, pathlib, socket, subprocess, time
from nodeagent.reset_unit.exchange.requests import RequestFolder
from nodeagent.reset_unit.exchange.requests import RequestedDevice, ResetRequest, name_of

FOLDER = RequestFolder(pathlib.Path("/run/nodeagent/reset_unit"))

def try_to(act):
    try:
        return str(act())
    except OSError as error:
        return type(error).__name__

def ask(number, **more):
    devices = tuple(RequestedDevice(name=f"npu{chip}") for chip in range(8))
    far_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 120 * 10**9
    name = FOLDER.ask(ResetRequest(
        action=f"die0/reset#{number}", attempt=1, vendor="ascend", devices=devices, deadline_ns=far_ns))
    file = FOLDER.path / f"{name}.request"
    file.write_text(json.dumps({**json.loads(file.read_text()), **more}))
    with socket.socket(socket.AF_UNIX) as door:
        door.connect("/run/nodeagent-reset/socket")
        door.sendall(f"{name}\\n".encode())
    while (result := FOLDER.result(name)) is None:
        time.sleep(0.1)
    FOLDER.forget(name)
    return [result.state, result.reason]

def report(result):
    pathlib.Path("/var/lib/nodeagent/intruder.json").write_text(json.dumps(result))
"""
AS_ROOT = """
def write(path):
    return lambda: pathlib.Path(path).write_text("mine")

def connect(path):
    def connected():
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(path)
    return connected

status = pathlib.Path("/proc/self/status").read_text().split()
report({
    "privileges": status[status.index("CapEff:") + 1],
    "configuration": try_to(write("/etc/nodeagent/nodeagent.toml")),
    "units": try_to(write("/run/systemd/system/mine.service")),
    "record": try_to(write("/var/lib/nodeagent-reset/resets/mine.json")),
    "counted": str(len(os.listdir("/var/lib/nodeagent-reset/resets"))),
    "bus": try_to(connect("/run/dbus/system_bus_socket")),
    "systemd": try_to(connect("/run/systemd/private")),
    "by_systemd": str(subprocess.run(["systemd-run", "touch", "/srv/mine"], capture_output=True).returncode),
})
"""
RESETS_OF_A_DEVICE = 3
"""As many as the configuration allows within six hours, unless it has another limit."""
FORGED = """
report([ask(1, before=[["touch", "/srv/mine"]]), ask(2)])
"""


@pytest.fixture(scope="module")
def node(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """With the package installed, and eight emulated NPUs that may be reset."""
    with laid_over(tmp_path_factory.mktemp("node"), installed) as root:
        switch(root, "disable", UNIT)
        write(root, f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        write(root, "/etc/systemd/system/nodeagent-reset@.service.d/test.conf", CONFIGURED)
        write(root, PATH, CONFIGURATION)
        with booted(root) as machine:
            machine.run("mkdir", "/var/lib/nodeagent")  # or the emulator writes elsewhere
            machine.run("systemd-run", "--unit=emulator", "nodeagent", "emulator", "start", "8x910B")
            until(
                lambda: machine.run("nodeagent", "emulator", "show", check=False).returncode,
                lambda status: status == 0,
            )
            machine.run("systemctl", "enable", "--now", UNIT)
            until(lambda: observed(machine), lambda number: number == 8)
            yield machine


def in_the_daemons_sandbox(node: Machine, script: str) -> Any:
    """What a script reports that runs in place of the daemon, with its unit: as an intruder in it would."""
    unit = (node.root / "lib/systemd/system" / UNIT).read_text()
    other = {"Type": "exec", "ExecStart": "/usr/lib/nodeagent/bin/python /etc/intruder.py", "Restart": "no"}
    dropped = ("NotifyAccess", "WatchdogSec", "ExecReload")
    lines = (line for line in unit.splitlines() if line.partition("=")[0] not in (*other, *dropped))
    intruder = "\n".join(lines).replace("[Service]", "\n".join(["[Service]", *map("=".join, other.items())]))
    node.write("/etc/intruder.py", INTRUDER + script)
    node.write("/etc/systemd/system/intruder.service", intruder)
    node.run("systemctl", "daemon-reload")
    node.run("systemctl", "start", "intruder.service")
    until(lambda: node.property_of("intruder.service", "SubState"), lambda state: state in {"dead", "failed"})
    report = node.root / "var/lib/nodeagent/intruder.json"
    assert report.exists(), node.read("journalctl", "--unit", "intruder", "--no-pager")
    return json.loads(report.read_text())


def test_the_units_of_a_reset_are_sound(node: Machine) -> None:
    verified = node.run(
        "systemd-analyze", "verify", "--man=no", "nodeagent-reset@x.service", "nodeagent-reset.socket"
    )
    assert verified.stderr == ""


def test_an_order_says_at_once_that_nothing_can_do_it(node: Machine) -> None:
    node.run("systemctl", "mask", "--now", "nodeagent-reset.socket")
    refused = node.run("nodeagent", "reset", "npu3", "--reason", "bench", check=False)
    rehearsed = node.read("nodeagent", "reset", "npu3", "--dry-run")
    node.run("systemctl", "unmask", "nodeagent-reset.socket")
    node.run("systemctl", "start", "nodeagent-reset.socket")

    socket = "/run/nodeagent-reset/socket: no process listens; is nodeagent-reset.socket active?"
    why = f"nothing can reset a device here: {socket}"
    assert (refused.returncode, refused.stderr) == (1, f"nodeagent: {why}\n")
    assert rehearsed.splitlines()[-1].strip() == why
    assert "it would be refused" not in node.read("nodeagent", "reset", "npu3", "--dry-run")


def test_a_reset_is_a_unit_of_its_own(node: Machine) -> None:
    finished, called = len(actions(node)), calls(node)
    unit = break_and_begin(node, "npu3")
    assert node.property_of(unit, "ControlGroup").endswith(unit)
    assert ended(node, finished + 1) == ("npu3", "done: verified by a poll of every member")
    assert calls(node) == called + 1
    until(lambda: unit_of_a_reset(node), lambda unit: unit == "")
    assert "reset in-band" in node.read("journalctl", "--unit", unit, "--no-pager")


def test_one_goes_on_while_the_package_is_upgraded_and_its_result_is_adopted(
    node: Machine, package: Path
) -> None:
    node.write("/root/nodeagent.deb", package.read_bytes())
    before = node.property_of(UNIT, "MainPID")
    finished, called = len(actions(node)), calls(node)
    break_and_begin(node, "npu5")
    until(lambda: calls(node), lambda number: number == called + 1)
    upgraded = node.run("dpkg", "--install", "/root/nodeagent.deb")
    assert node.property_of(UNIT, "MainPID") != before
    assert "quiesced for dpkg, until " in upgraded.stderr
    assert "nodeagent: waiting for a reset that is under way: /run/nodeagent/reset_unit/" in upgraded.stderr
    holds = json.loads(node.read("nodeagent", "status", "-o", "json"))["holds"]
    assert [hold for hold in holds if hold["kind"] == "quiesce"] == []
    assert ended(node, finished + 1) == ("npu5", "done: verified by a poll of every member")
    assert calls(node) == called + 1


def test_one_goes_on_while_the_daemon_is_killed_and_down(node: Machine) -> None:
    finished, called = len(actions(node)), calls(node)
    break_and_begin(node, "npu6")
    node.run("systemctl", "kill", "--signal=KILL", UNIT)
    node.run("systemctl", "stop", UNIT)
    until(lambda: unit_of_a_reset(node), lambda unit: unit == "")
    node.run("systemctl", "start", UNIT)
    assert ended(node, finished + 1) == ("npu6", "done: verified by a poll of every member")
    assert calls(node) == called + 1


def test_an_intruder_in_the_daemon_changes_nothing_that_root_obeys(node: Machine) -> None:
    reset_until_recorded(node, 1)
    assert in_the_daemons_sandbox(node, AS_ROOT) == {
        "privileges": "0000000400000000",
        "configuration": "OSError",
        "units": "OSError",
        "record": "OSError",
        "counted": str(recorded(node)),
        "bus": "FileNotFoundError",
        "systemd": "FileNotFoundError",
        "by_systemd": "1",
    }
    assert not (node.root / "srv/mine").exists()


def test_an_intruder_in_the_daemon_gets_no_reset_beyond_the_limit_and_no_hook_of_its_own(
    node: Machine,
) -> None:
    reset_until_recorded(node, RESETS_OF_A_DEVICE)
    called = calls(node)
    unknown = "the request cannot be used: Object contains unknown field `before`"
    assert in_the_daemons_sandbox(node, FORGED) == [
        ["refused", unknown],
        ["refused", "npu0 had 3 resets within 6 h, by their record"],
    ]
    assert not (node.root / "srv/mine").exists()
    assert calls(node) == called
