"""A machine that systemd booted, with the package installed, and what its commands print."""

import contextlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.machine import KMSG, Machine, booted, until
from tests.e2e.tree import SUITE, laid_over

UNIT = "nodeagent.service"
# The one thing that differs from a node: the kernel log has another name, and its lines come from user space.
DROP_IN = f"""
[Service]
Environment=NODEAGENT_CONFIG=/etc/nodeagent-test.toml
DeviceAllow={KMSG} r
"""
CONFIGURATION = f"""
[drivers.kmsg]
path = "{KMSG}"
trust_userspace = true
"""


@contextlib.contextmanager
def machine_with(package: Path, folder: Path, suite: str = SUITE) -> Iterator[Machine]:
    """A booted machine of that release with the package installed and nothing else done to it."""
    with laid_over(folder, suite=suite) as root, booted(root) as machine:
        machine.write("/etc/nodeagent-test.toml", CONFIGURATION)
        machine.write(f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        machine.write("/root/nodeagent.deb", package.read_bytes())
        machine.run("dpkg", "--install", "/root/nodeagent.deb")
        yield machine


def new_device() -> str:
    """A PCI address that nobody has: the kernel log still holds the lines of earlier runs."""
    return f"{0x1000 + secrets.randbelow(0xE000):04x}:{secrets.randbelow(256):02x}:00"


def fallen_off_the_bus(device: str) -> str:
    return f"NVRM: Xid (PCI:{device}): 79, pid=1234, name=python, GPU has fallen off the bus."


def events_of(node: Machine, *devices: str) -> list[dict[str, Any]]:
    lines = node.read("nodeagent", "events", "-o", "json").splitlines()
    return [event for event in map(json.loads, lines) if event["device"].removesuffix(".0") in devices]


def events_once_open(node: Machine, device: str, *others: str) -> list[dict[str, Any]]:
    """Those of the devices, once the first has the fault of ``fallen_off_the_bus``.

    Asked by a client until then: a command for each question is most of what a test takes.
    """
    with node.client() as client:
        until(lambda: {each.device for each in client.conditions()}, lambda devices: f"{device}.0" in devices)
    return events_of(node, device, *others)


def status(node: Machine) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "status", "-o", "json"))
    return shown


def conditions(node: Machine) -> dict[str, dict[str, Any]]:
    """What is open on the node itself, by code."""
    return {each["code"]: each for each in status(node)["conditions"] if each["device"] == "node"}


def name_schema(node: Machine, schema: int) -> None:
    """In the header of the store's file, while no daemon runs."""
    with (node.root / "var/lib/nodeagent/store.db").open("r+b") as file:
        file.seek(60)
        file.write(schema.to_bytes(4, "big"))


def raised(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (event["device"].removesuffix(".0"), event["code"]) for event in events if event["kind"] == "raised"
    ]
