"""The worker that reads NPUs, on a machine that systemd booted: to their driver a process of the host."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import Kind, Snapshot
from nodeagent.schedulers.kubernetes.facts import facts_of
from nodeagent.schedulers.slurm.verdicts import judge
from tests.e2e.machine import Machine, booted, until, write
from tests.e2e.tree import laid_over, switch

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

UNIT = "nodeagent.service"
PATH = "/etc/nodeagent-test.toml"
CONFIGURED = f"""
[Service]
Environment=NODEAGENT_CONFIG={PATH}
"""
CONFIGURATION = """
[drivers.kmsg]
enabled = false

[drivers.ascend]
library = "/var/lib/nodeagent/emulator/libdcmi.so"
sysfs = "/var/lib/nodeagent/emulator/sys"
"""
SANDBOX = "/run/systemd/system/nodeagent-ascend@.service.d/sandbox.conf"
DEVICES = ("davinci_manager", *(f"davinci{number}" for number in range(8)))
PYTHON = "/usr/lib/nodeagent/bin/python"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CONTAINER = ("unshare", "--mount", "setpriv", "--bounding-set=-sys_admin")

OPENS_EVERY_CHIP = """
import ctypes
library = ctypes.CDLL("/var/lib/nodeagent/emulator/libdcmi.so")
status, count = library.dcmi_init(), ctypes.c_int()
library.dcmi_get_all_device_count(ctypes.byref(count))
print(status, count.value)
"""
CONNECTS = """
import socket
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
    door.connect("/run/nodeagent-ascend/socket")
"""


@pytest.fixture(scope="module")
def node(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """With the package, eight emulated NPUs, and device nodes as the driver's installation leaves them."""
    with laid_over(tmp_path_factory.mktemp("node"), installed) as root:
        switch(root, "disable", UNIT)
        write(root, f"/etc/systemd/system/{UNIT}.d/test.conf", CONFIGURED)
        write(root, PATH, CONFIGURATION)
        with booted(root) as machine:
            machine.run("groupadd", "HwHiAiUser")
            for name in DEVICES:
                machine.run("mknod", "--mode=660", f"/dev/{name}", "c", "1", "3")
                machine.run("chgrp", "HwHiAiUser", f"/dev/{name}")
            machine.run("mkdir", "/var/lib/nodeagent")  # or the emulator writes elsewhere
            machine.run("systemd-run", "--unit=emulator", "nodeagent", "emulator", "start", "8x910B")
            emulator(machine, "set", "node", "device_folder", "/dev")
            machine.run("systemctl", "start", UNIT)
            until(lambda: observed(machine), lambda devices: len(devices) == 8)
            yield machine


def emulator(node: Machine, *request: str) -> None:
    """Once it is there."""
    until(
        lambda: node.run("nodeagent", "emulator", *request, check=False).returncode,
        lambda status: status == 0,
    )


def calls(node: Machine, function: str) -> int:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "emulator", "show", "-o", "json"))
    return int(shown["calls"].get(function, 0))


def observed(node: Machine) -> list[str]:
    with node.client() as client:
        return [each.name for each in client.devices() if each.observed and each.kind is Kind.CHIP]


def conditions(node: Machine) -> list[str]:
    with node.client() as client:
        return [each.code for each in client.conditions()]


def processes(node: Machine, command: str) -> list[str]:
    return node.run("pgrep", "--full", f"^[^ ]*python.* {command}$", check=False).stdout.split()


def worker(node: Machine) -> str:
    """The process that reads the NPUs, as soon as there is one."""
    return until(lambda: processes(node, "nodeagent.worker ascend"), lambda found: len(found) == 1)[0]


def mounts(node: Machine, process: str) -> str:
    return node.read("readlink", f"/proc/{process}/ns/mnt")


def status_of(node: Machine, process: str) -> dict[str, list[str]]:
    lines = node.read("cat", f"/proc/{process}/status").splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


@dataclass(frozen=True)
class Answers:
    """What each interface says of the node. ``events`` are the verdicts that its events have had."""

    status: str
    scan: int
    snapshot: str
    metrics: str
    slurm: str
    kubernetes: str
    lost: str
    reasons: list[str]
    events: set[str]


METRICS = """
import re, urllib.request
text = urllib.request.urlopen("http://127.0.0.1:9108/metrics").read().decode()
print(*re.findall('nodeagent_device_verdict{device="node",kind="node",verdict="([A-Z_]+)"} 1', text))
"""


def answers(node: Machine) -> Answers:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "status", "-o", "json"))
    events = map(json.loads, node.read("nodeagent", "events", "-o", "json").splitlines())
    with node.client() as client:
        taken = next(iter(client.watch(snapshot="always")))
    assert isinstance(taken, Snapshot)
    (itself,) = (each for each in taken.devices if each.name == "node")
    return Answers(
        status=shown["node"]["verdict"],
        scan=node.run("nodeagent", "scan", check=False).returncode,
        snapshot=str(itself.verdict),
        metrics=node.read(PYTHON, "-c", METRICS),
        slurm=str(judge(taken.devices).standing),
        kubernetes=str(facts_of(taken).node),
        lost=next((each["reason"] for each in shown["sources"] if each["lost_at"]), ""),
        reasons=[each.text for each in itself.reasons],
        events={event["verdict"] for event in events if event["device"] == "node"},
    )


def test_its_units_are_sound(node: Machine) -> None:
    verified = node.run(
        "systemd-analyze", "verify", "--man=no", "nodeagent-ascend@x.service", "nodeagent-ascend.socket"
    )
    assert verified.stderr == ""


def test_it_is_a_process_of_the_host_and_the_daemon_stays_in_its_sandbox(node: Machine) -> None:
    daemon = node.property_of(UNIT, "MainPID")
    others = processes(node, "nodeagent.worker nvidia")
    assert mounts(node, worker(node)) == mounts(node, "1")
    assert mounts(node, daemon) != mounts(node, "1")
    assert {mounts(node, other) for other in others} <= {mounts(node, daemon)}


def test_it_is_a_user_without_privileges_in_the_group_of_the_devices(node: Machine) -> None:
    shown = status_of(node, worker(node))
    user = node.read("id", "--user", "nodeagent-ascend")
    group = node.read("getent", "group", "HwHiAiUser").split(":")[2]
    assert (shown["Uid"], shown["Groups"]) == ([user] * 4, [group])
    assert {shown[each][0] for each in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert shown["NoNewPrivs"] == ["1"]
    assert node.read("stat", "--format=%a %G", "/dev/davinci0") == "660 HwHiAiUser"


def test_a_container_opens_every_chip_meanwhile(node: Machine) -> None:
    assert node.read(*CONTAINER, PYTHON, "-c", OPENS_EVERY_CHIP) == "0 8"
    assert len(observed(node)) == 8


def test_its_socket_masked_on_an_empty_store_is_unknown_in_every_answer(node: Machine) -> None:
    node.run("systemctl", "stop", UNIT)
    node.run("sh", "-c", "rm /var/lib/nodeagent/store.db*")
    node.run("systemctl", "mask", "--now", "nodeagent-ascend.socket")
    node.run("systemctl", "start", UNIT)

    masked = until(lambda: answers(node), lambda said: bool(said.lost))
    node.run("systemctl", "stop", UNIT)
    alone = node.run("env", f"NODEAGENT_CONFIG={PATH}", "nodeagent", "scan", check=False)
    node.run("systemctl", "unmask", "nodeagent-ascend.socket")
    node.run("systemctl", "start", UNIT, "nodeagent-ascend.socket")
    until(lambda: observed(node), lambda devices: len(devices) == 8)
    well = until(lambda: answers(node), lambda said: said.status == "ALLOW")

    why = "cannot start its worker: /run/nodeagent-ascend/socket: Connection refused; "
    assert (masked.status, masked.scan, masked.snapshot, masked.metrics, masked.slurm, masked.kubernetes) == (
        ("UNKNOWN", 2, "UNKNOWN", "UNKNOWN", "unknown", "UNKNOWN")
    )
    told = sorted(reason.partition(why)[:2] for reason in masked.reasons)
    assert told == [("ascend: ", why), ("unifiedbus: ", why)]
    assert masked.events == {"UNKNOWN"}
    # It needs no socket: it looks with a process of its own, as root.
    assert (alone.returncode, alone.stdout) == (0, "good: 8 NPUs and the node\n")
    assert (well.status, well.scan, well.metrics, well.slurm) == ("ALLOW", 0, "ALLOW", "well")


def test_nobody_but_root_may_ask_for_one(node: Machine) -> None:
    refused = node.run(*NOBODY, PYTHON, "-c", CONNECTS, check=False)
    assert "PermissionError" in refused.stderr


def test_one_that_hangs_is_ended_and_replaced(node: Machine) -> None:
    before = worker(node)
    node.run("nodeagent", "emulator", "hang", "--lock")
    until(lambda: before in processes(node, "nodeagent.worker ascend"), lambda lives: not lives)
    node.run("nodeagent", "emulator", "release")
    until(lambda: observed(node), lambda devices: len(devices) == 8)
    assert worker(node) != before


def test_in_a_file_system_of_its_own_it_says_so_and_asks_the_driver_for_nothing(node: Machine) -> None:
    asked = calls(node, "dcmi_init")
    node.run("mkdir", "--parents", str(Path(SANDBOX).parent))
    node.run("sh", "-c", f"printf '[Service]\nPrivateTmp=yes\n' >{SANDBOX}")
    node.run("systemctl", "daemon-reload")
    node.run("systemctl", "restart", UNIT)
    until(lambda: conditions(node), lambda codes: "private_mount_namespace" in codes)
    assert calls(node, "dcmi_init") == asked

    node.run("rm", SANDBOX)
    node.run("systemctl", "daemon-reload")
    node.run("systemctl", "restart", UNIT)
    until(lambda: conditions(node), lambda codes: "private_mount_namespace" not in codes)
    until(lambda: observed(node), lambda devices: len(devices) == 8)


@pytest.mark.parametrize("how", [("stop",), ("kill", "--signal=KILL", "--kill-whom=main")])
def test_it_ends_with_the_daemon(node: Machine, how: tuple[str, ...]) -> None:
    before = worker(node)
    node.run("systemctl", *how, UNIT)
    until(lambda: before in processes(node, "nodeagent.worker ascend"), lambda lives: not lives)
    node.run("systemctl", "start", UNIT)
    until(lambda: observed(node), lambda devices: len(devices) == 8)
