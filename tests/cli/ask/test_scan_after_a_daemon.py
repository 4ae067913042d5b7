"""scan where a daemon has run and none answers: what it knew counts together with what is read."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.node import EmulatedNode
from tests.cli.conftest import Nodeagent
from tests.harness.node import Node, daemon_of
from tests.shipped import OF_GPUS

SITE = """
[codes.ALARM]
kind = "host"
vendor = "site"
name = "Alarm"
level = "SeparateFault"
clear_on = ["operator"]

[[pattern]]
id = "ALARM"
code = "ALARM"
regex = "^alarm$"
device = "node"

[codes.XID_43]
kind = "chip"
vendor = "nvidia"
name = "Tick"
level = "SubHealthFault"
clear_on = ["1s"]

[[frequency]]
id = "once"
codes = ["XID_43"]
times = 1
time_window = "24h"
level = "ManuallySeparateNPU"
correlation = "0s"
"""


class Site(Node):
    """Two GPUs, and tables of its own."""

    @contextmanager
    def life(self, *, killed: bool = False) -> Iterator[None]:
        """A daemon runs, and has seen both GPUs."""
        with self.daemon() as stream:
            self.stream = stream
            for _ in ("node", "gpu0", "gpu1"):
                stream.until(" ALLOW ")
            yield
            if killed:
                os.kill(daemon_of(self.socket), signal.SIGKILL)


@pytest.fixture
def chips(tmp_path: Path) -> Iterator[EmulatedNode]:
    with EmulatedNode.create(tmp_path / "chips", "2xH100") as chips:
        yield chips


@pytest.fixture
def site(tmp_path: Path, chips: EmulatedNode) -> Site:
    site = Site.within(tmp_path, configuration_of(chips))
    site.lay_over(SITE, OF_GPUS)
    return site


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_what_a_person_took_out_of_service_is_not_good(
    site: Site, nodeagent: Nodeagent, state: Path, killed: bool
) -> None:
    with site.life(killed=killed):
        nodeagent("isolate", "gpu1", "--reason", "RMA")
        nodeagent("isolate", "node", "--reason", "a while", "--for", "1s")
        site.stream.until("released ")
    before = files(state)

    ran, form = nodeagent("scan"), nodeagent("scan", "-o", "json").json[0]

    assert (ran.status, ran.out) == (1, "faulty: gpu1 ISOLATE: alice: RMA\n")
    assert (form["by"], [each["name"] for each in form["faulty"]]) == ("probe", ["gpu1"])
    assert files(state) == before


def test_what_a_rule_promoted_or_only_a_person_clears_is_not_good(
    site: Site, chips: EmulatedNode, nodeagent: Nodeagent
) -> None:
    with site.life():
        site.write("alarm")
        chips.gpus.raise_xid("gpu1", 43)
        site.stream.until("promoted")
        site.stream.until("cleared")

    ran = nodeagent("scan")

    assert (ran.status, ran.out) == (
        1,
        "faulty: node ISOLATE: ALARM Alarm\nfaulty: gpu1 ISOLATE: XID_43 Tick\n",
    )


def test_what_is_over_by_now_is_good(site: Site, chips: EmulatedNode, nodeagent: Nodeagent) -> None:
    with site.life():
        nodeagent("isolate", "gpu1", "--reason", "RMA", "--for", "1s")
        chips.set("gpu0", "gpu_recovery_action", 2)
        site.stream.until("gpu0")
    chips.set("gpu0", "gpu_recovery_action", 0)
    time.sleep(1.1)  # the hold's time, which nobody announces

    ran = nodeagent("scan")

    assert (ran.status, ran.out) == (0, "good: 2 GPUs and the node\n")


def test_a_chip_that_was_known_and_cannot_be_read_any_more_is_unknown(
    site: Site, chips: EmulatedNode, nodeagent: Nodeagent
) -> None:
    with site.life():
        pass
    text = site.configuration.read_text().replace(str(chips.nvml), f"{chips.nvml}.gone")
    site.configuration.write_text(text.replace(str(chips.sysfs), f"{chips.sysfs}.gone"))

    ran = nodeagent("scan", "-o", "json")

    assert (ran.status, ran.json[0]["result"], ran.json[0]["faulty"]) == (2, "unknown", [])
    assert {each["name"]: each["verdict"] for each in ran.json[0]["devices"]} == {
        "node": "ALLOW",
        "gpu0": "UNKNOWN",
        "gpu1": "UNKNOWN",
    }


def broken(state: Path, how: str) -> None:
    database = state / "store.db"
    match how:
        case "gone":
            for path in state.iterdir():
                path.unlink()
        case "empty":
            database.write_bytes(b"")
        case "damaged":
            data = bytearray(database.read_bytes())
            data[4096:] = bytes(len(data) - 4096)
            database.write_bytes(data)
        case "other":
            database.write_bytes(b"this is no database, whatever its name says" * 100)


def test_a_store_that_cannot_be_read_is_not_good_and_reason_is_shown(
    site: Site, nodeagent: Nodeagent, state: Path
) -> None:
    with site.life():
        nodeagent("isolate", "gpu1", "--reason", "RMA")
    sound = files(state)
    said = {}
    for how in ("gone", "empty", "damaged", "other"):
        for name, content in sound.items():
            (state / name).write_bytes(content)
        broken(state, how)
        said[how] = nodeagent("scan")

    reason = f"unknown: what was known of this node cannot be read: {state}/store.db"
    for how, ran in said.items():
        assert (ran.status, ran.out.startswith(reason), len(ran.out.splitlines())) == (2, True, 1), how


def test_a_fault_that_is_seen_is_reported_though_the_store_cannot_be_read(
    site: Site, chips: EmulatedNode, nodeagent: Nodeagent, state: Path
) -> None:
    with site.life():
        pass
    broken(state, "gone")
    chips.set("gpu0", "gpu_recovery_action", 2)

    ran = nodeagent("scan")

    assert ran.status == 1
    assert [line.partition(":")[0] for line in ran.out.splitlines()] == ["faulty", "unknown"]


def unprivileged(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Root without root's right to everything: what permissions say counts."""
    command = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    return subprocess.run(
        [*command, sys.executable, "-m", "nodeagent.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.root
def test_a_store_that_one_may_not_read_is_not_good(site: Site, state: Path) -> None:
    with site.life():
        pass
    state.chmod(0)

    ran = unprivileged("scan")

    state.chmod(0o750)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert f"unknown: what was known of this node cannot be read: {state}/store.db: " in ran.stdout
    assert "Permission denied" in ran.stdout


@pytest.mark.root
def test_a_missing_permission_is_reported_once(site: Site) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(site.socket))
        daemon.listen()
        site.socket.chmod(0)
        ran = unprivileged("scan")

    assert (ran.returncode, ran.stderr) == (2, "")
    todo = f"run as root, or join its group (ls -l {site.socket})"
    assert ran.stdout == f"unknown: permission denied on {site.socket}: {todo}\n"


@pytest.mark.root
def test_a_socket_that_is_named_and_may_not_be_read_is_no_wrong_command_line(site: Site) -> None:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(site.socket))
        daemon.listen()
        site.socket.chmod(0)
        ran = unprivileged("devices", "--socket", str(site.socket))

    assert ran.returncode == 77
    assert ran.stderr.startswith(f"nodeagent: permission denied on {site.socket}: run as root")
