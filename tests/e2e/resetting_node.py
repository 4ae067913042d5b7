"""A machine that systemd booted, whose daemon resets emulated chips by the reset unit."""

import json
from typing import Any

from tests.e2e.machine import KMSG, Machine, until

UNIT = "nodeagent.service"
PATH = "/etc/nodeagent-test.toml"
CODE = "80A18008"
CONFIGURED = f"""
[Service]
Environment=NODEAGENT_CONFIG={PATH}
"""
DROP_IN = f"""{CONFIGURED}
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


def observed(node: Machine) -> int:
    """How many NPUs."""
    with node.client() as client:
        return sum(each.observed and each.name.startswith("npu") for each in client.devices())


def actions(node: Machine) -> list[tuple[str, str]]:
    """Device and reason of the events about resets that ended."""
    shown = node.read("nodeagent", "events", "--after", "0", "--kind", "action_finished", "-o", "json")
    return [(event["device"], event["why"]) for event in map(json.loads, shown.splitlines())]


def ended(node: Machine, number: int) -> tuple[str, str]:
    """The last of ``actions``, once so many resets have ended: then no fault of theirs is left."""
    with node.client() as client:
        until(lambda: {each.code for each in client.conditions()}, lambda codes: CODE not in codes)
    return until(lambda: actions(node), lambda finished: len(finished) == number)[-1]


def calls(node: Machine) -> int:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "emulator", "show", "-o", "json"))
    return int(shown["calls"].get("dcmi_set_device_reset", 0))


def recorded(node: Machine) -> int:
    """How many resets the reset unit has counted."""
    record = node.root / "var/lib/nodeagent-reset/resets"
    return len(list(record.iterdir())) if record.exists() else 0


def unit_of_a_reset(node: Machine) -> str:
    """The one that runs now, "" if none does."""
    listed = node.read("systemctl", "list-units", "--plain", "--no-legend", "nodeagent-reset@*").split()
    return listed[0] if listed else ""


def break_and_begin(node: Machine, device: str) -> str:
    """Breaks an NPU and waits for the unit of its reset."""
    node.run("nodeagent", "emulator", "raise", device, CODE)
    return until(lambda: unit_of_a_reset(node), bool)


def reset_until_recorded(node: Machine, number: int) -> None:
    """Breaks NPUs, one after the other, until at least so many resets were counted."""
    while recorded(node) < number:
        finished = len(actions(node))
        break_and_begin(node, "npu3")
        ended(node, finished + 1)
