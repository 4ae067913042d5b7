"""The package, installed in a machine that systemd booted: what an operator gets from `apt install`."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.store.layout import SCHEMA_VERSION
from tests.conftest import WriteKernelLine
from tests.e2e.installed_node import (
    CONFIGURATION,
    UNIT,
    conditions,
    events_once_open,
    fallen_off_the_bus,
    machine_with,
    name_schema,
    new_device,
    raised,
    status,
)
from tests.e2e.machine import Machine, until
from tests.journals import FILE, Entry, write_journal
from tests.sources import only_named

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]
BRIDGE = "nodeagent-slurm.service"
PYTHON = "/usr/lib/nodeagent/bin/python"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
EMULATED = """
[drivers.ascend]
library = "/var/lib/nodeagent/emulator/libdcmi.so"
sysfs = "/var/lib/nodeagent/emulator/sys"
"""


@pytest.fixture(scope="module")
def node(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Its first start is with all sources, as on a node; later ones are with those that the tests need."""
    with machine_with(package, tmp_path_factory.mktemp("node")) as machine:
        machine.write("/etc/nodeagent-test.toml", configured())
        yield machine


def configured(more: str = "") -> str:
    """Each source that is on starts a process: half of what a start of the daemon takes."""
    return only_named(f"{CONFIGURATION}{more}\n[drivers.previous_boot]\n")


def notices_of_the_previous_boot(node: Machine) -> list[dict[str, Any]]:
    lines = node.read("nodeagent", "events", "-o", "json").splitlines()
    events = map(json.loads, lines)
    return [event for event in events if (event["source"], event["kind"]) == ("previous_boot", "notice")]


def test_installing_starts_and_enables_the_service(node: Machine) -> None:
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert node.property_of(UNIT, "UnitFileState") == "enabled"
    assert node.property_of(UNIT, "NRestarts") == "0"


def test_unit_is_sound_and_confined(node: Machine) -> None:
    verified = node.run("systemd-analyze", "verify", "--man=no", UNIT)
    judged = node.run("systemd-analyze", "security", "--offline=true", "--threshold=30", UNIT, check=False)

    assert verified.stderr == ""
    assert judged.returncode == 0, judged.stdout


def test_the_bridge_to_slurm_is_off_confined_and_follows_the_daemon_within_its_sandbox(node: Machine) -> None:
    assert node.property_of(BRIDGE, "UnitFileState") == "disabled"
    assert node.run("systemd-analyze", "verify", "--man=no", BRIDGE).stderr == ""
    judged = node.run("systemd-analyze", "security", "--offline=true", "--threshold=25", BRIDGE, check=False)
    assert judged.returncode == 0, judged.stdout

    node.run("systemctl", "start", BRIDGE)
    # The machine has no Slurm: it asks for it only once the daemon has told it how the node is.
    until(
        lambda: node.run("journalctl", "--unit", BRIDGE, check=False).stdout,
        lambda said: "scontrol: No such file or directory; programs in [slurm] names its folder" in said,
    )
    assert node.property_of(BRIDGE, "NRestarts") == "0"
    seen = f"/proc/{node.property_of(BRIDGE, 'MainPID')}/root/run/systemd/private"
    assert node.read("stat", "-c", "%a", seen) == "0", "the socket by which root orders systemd"
    node.run("systemctl", "stop", BRIDGE)
    assert node.property_of(BRIDGE, "Result") == "success"


@pytest.mark.parametrize("unit", ["nodeagent-fleet.service", "nodeagent-fleet-page.service"])
def test_the_examples_of_followers_are_sound_units(node: Machine, unit: str) -> None:
    example = f"/usr/share/doc/nodeagent/examples/fleet/{unit}"
    assert node.run("systemd-analyze", "verify", "--man=no", example).stderr == ""


def test_sockets_are_for_their_groups_only(node: Machine) -> None:
    names = [f"/run/nodeagent/{name}.sock" for name in ("nodeagent", "control", "jobs")]
    listed = node.read("stat", "-c", "%n %a %G", *names)

    assert listed.splitlines() == [
        "/run/nodeagent/nodeagent.sock 660 nodeagent",
        "/run/nodeagent/control.sock 660 nodeagent-admin",
        "/run/nodeagent/jobs.sock 666 root",
    ]


def test_a_job_of_any_user_is_supervised_and_named_by_its_process(node: Machine) -> None:
    """The confined unit sees of a process what names it, and of no user's more than that."""
    ran = [PYTHON, "-m", "nodeagent.job", "run", "--state", "/tmp/job", "--", "sleep", "1"]
    node.run(*NOBODY, *ran)

    (job,) = map(json.loads, node.read("nodeagent", "job", "list", "--all", "-o", "json").splitlines())
    assert (job["name"], job["uid"], job["stage"], job["status"]) == (f"pid:{job['pid']}", 65534, "ended", 0)


def test_a_job_of_slurm_is_named_by_the_cgroup_that_root_made(node: Machine) -> None:
    """The confined unit sees whose the folders are."""
    step = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0"
    enters = f'mkdir -p {step} && echo $$ > {step}/cgroup.procs && exec "$@"'
    ran = [PYTHON, "-m", "nodeagent.job", "run", "--state", "/tmp/slurm", "--", "sleep", "1"]
    node.run("sh", "-c", enters, "sh", *NOBODY, *ran)

    listed = map(json.loads, node.read("nodeagent", "job", "list", "--all", "-o", "json").splitlines())
    assert ("slurm:7.0", 65534) in [(job["name"], job["uid"]) for job in listed]


def test_injected_kernel_line_becomes_an_event_and_a_condition(
    node: Machine, write_kernel_line: WriteKernelLine
) -> None:
    device = new_device()

    write_kernel_line(fallen_off_the_bus(device))

    events = events_once_open(node, device)
    status = json.loads(node.read("nodeagent", "status", "-o", "json"))
    assert raised(events) == [(device, "XID_79")]
    assert (f"{device}.0", "XID_79") in [(open_["device"], open_["code"]) for open_ in status["conditions"]]


def test_the_journal_explains_the_fault_by_the_row_of_its_code(
    node: Machine, write_kernel_line: WriteKernelLine
) -> None:
    device = new_device()

    write_kernel_line(fallen_off_the_bus(device))

    events_once_open(node, device)
    of_device = f"NODEAGENT_DEVICE={device}.0"
    explained = until(
        lambda: node.read("journalctl", "-x", "-u", UNIT, of_device), lambda text: "XID_79" in text
    )
    assert f"Subject: {device}.0: XID_79 " in explained
    assert "Do: " in explained


def test_an_export_is_off_confined_and_has_a_position_while_its_receiver_is_down(node: Machine) -> None:
    export = "nodeagent-export@siem.service"
    node.write("/etc/nodeagent/export/siem.conf", "EXPORT=syslog tcp://127.0.0.1:6514\n")
    assert node.property_of(export, "UnitFileState") == "disabled"
    assert node.run("systemd-analyze", "verify", "--man=no", export).stderr == ""
    judged = node.run("systemd-analyze", "security", "--offline=true", "--threshold=25", export, check=False)
    assert judged.returncode == 0, judged.stdout

    node.run("systemctl", "start", export)
    until(lambda: node.read("nodeagent", "consumers"), lambda text: "export-siem" in text)

    assert node.property_of(export, "ActiveState") == "active"
    assert node.property_of(export, "NRestarts") == "0"
    node.run("systemctl", "stop", export)
    assert node.property_of(export, "Result") == "success"


def test_the_end_of_a_boot_that_crashed_is_read_from_within_the_sandbox(node: Machine) -> None:
    device = new_device()
    # The sandbox shows the kernel's id of this boot, not the machine's. So to the daemon the machine's own
    # entries are of an earlier boot too, and this entry must be the latest one.
    line = Entry(boot="1" * 32, at_s=int(time.time()) + 3600, message=fallen_off_the_bus(device))
    journal = write_journal(node.root / "var/log/journal" / node.read("cat", "/etc/machine-id"), [line])

    node.run("systemctl", "restart", UNIT)

    notices = until(lambda: notices_of_the_previous_boot(node), bool)
    (journal / FILE).unlink()
    assert [notice["code"] for notice in notices] == ["XID_79"]
    assert notices[0]["evidence"]["line"] == line.message
    assert f"{device}.0" not in [each["name"] for each in status(node)["devices"]]


def test_reload_keeps_the_process(node: Machine) -> None:
    before = node.property_of(UNIT, "MainPID")

    node.run("systemctl", "reload", UNIT)

    until(lambda: node.property_of(UNIT, "ActiveState"), lambda state: state == "active")
    assert node.property_of(UNIT, "MainPID") == before


def test_a_refused_reload_fails_with_the_reason_and_is_seen_until_it_is_mended(node: Machine) -> None:
    before = node.property_of(UNIT, "MainPID")
    node.write("/etc/nodeagent-test.toml", configured("[agnt]\n"))
    refused = node.run("systemctl", "reload", UNIT, check=False)
    logged = node.read("journalctl", "--unit", UNIT, "--no-pager")
    standing = conditions(node)

    node.write("/etc/nodeagent-test.toml", configured())
    node.run("systemctl", "reload", UNIT)

    reason = '/etc/nodeagent-test.toml:5: agnt: unknown key; the nearest known is "agent"'
    assert refused.returncode != 0
    assert f"nodeagent: {reason}" in logged
    assert (node.property_of(UNIT, "ActiveState"), node.property_of(UNIT, "MainPID")) == ("active", before)
    assert standing["configuration_rejected"]["evidence"]["reason"] == reason
    assert "configuration_rejected" not in conditions(node)


def test_a_restart_with_a_broken_configuration_keeps_watching(
    node: Machine, write_kernel_line: WriteKernelLine
) -> None:
    device = new_device()
    node.write("/etc/nodeagent-test.toml", configured("[agnt]\n"))
    node.run("systemctl", "restart", UNIT)
    write_kernel_line(fallen_off_the_bus(device))
    events = events_once_open(node, device)
    standing = conditions(node)

    node.write("/etc/nodeagent-test.toml", configured())
    node.run("systemctl", "reload", UNIT)

    assert raised(events) == [(device, "XID_79")]
    assert standing["configuration_rejected"]["level"] == "NotHandleFault"
    assert "configuration_rejected" not in conditions(node)


def test_without_a_configuration_that_ever_worked_a_mended_one_is_taken_by_itself(node: Machine) -> None:
    node.run("systemctl", "stop", UNIT)
    node.run("rm", "/var/lib/nodeagent/last-good.toml")
    node.write("/etc/nodeagent-test.toml", configured("[agnt]\n"))
    failed = node.run("systemctl", "start", UNIT, check=False)
    until(lambda: node.property_of(UNIT, "NRestarts"), lambda restarts: restarts not in ("0", ""))

    node.write("/etc/nodeagent-test.toml", configured())

    assert failed.returncode != 0
    assert "code=exited, status=78/CONFIG" in node.read("journalctl", "--unit", UNIT, "--no-pager")
    until(lambda: node.property_of(UNIT, "ActiveState"), lambda state: state == "active")
    node.run("systemctl", "reset-failed", UNIT)


def test_a_removal_does_not_begin_while_a_reset_does_not_end(node: Machine) -> None:
    lock = "/run/nodeagent/reset_unit/npu3.1.lock"
    node.run("mkdir", "--parents", "/run/nodeagent/reset_unit")
    node.run("systemd-run", "--unit=reset", "flock", lock, "sleep", "600")
    until(
        lambda: node.run("flock", "--nonblock", lock, "true", check=False).returncode, lambda held: held == 1
    )

    removed = node.run("env", "NODEAGENT_RESET_LIMIT_S=2", "dpkg", "--remove", "nodeagent", check=False)

    assert removed.returncode != 0
    waits = rf"nodeagent: waiting for a reset that is under way: {lock}; \d s so far, 2 s at most"
    assert re.search(waits, removed.stderr)
    assert (
        f"nodeagent: a reset is under way and still holds {lock}: try again when it has ended"
        in removed.stderr
    )
    assert node.read("dpkg-query", "--show", "--showformat=${db:Status-Status}", "nodeagent") == "installed"
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert status(node)["holds"] == []
    node.run("systemctl", "stop", "reset")


def test_a_version_that_cannot_read_the_store_is_refused_before_anything_is_changed(
    node: Machine, former_package: Path
) -> None:
    process = node.property_of(UNIT, "MainPID")
    node.write("/root/former.deb", former_package.read_bytes())

    refused = node.run("dpkg", "--install", "/root/former.deb", check=False)

    assert refused.returncode != 0
    assert (
        "nodeagent: /var/lib/nodeagent/store.db was written by a newer nodeagent: it has schema"
        f" {SCHEMA_VERSION}, and this version knows {SCHEMA_VERSION - 1}." in refused.stderr
    )
    shown = node.read("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "nodeagent")
    assert shown.startswith("installed ")
    assert shown != "installed 0.0.1"
    assert node.read("dpkg", "--verify", "nodeagent") == ""
    assert node.property_of(UNIT, "MainPID") == process
    assert status(node)["holds"] == []


def test_without_that_store_it_is_installed_as_the_refusal_says(node: Machine) -> None:
    node.run("systemctl", "stop", UNIT)
    name_schema(node, SCHEMA_VERSION + 1)
    refused = node.run("dpkg", "--install", "/root/nodeagent.deb", check=False)
    (way_out,) = [line for line in refused.stderr.splitlines() if "&& mv" in line]

    node.run("sh", "-c", way_out.removeprefix("nodeagent: "))
    node.run("dpkg", "--install", "/root/nodeagent.deb")

    assert refused.returncode != 0
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert status(node)["durable"]
    assert node.run("test", "-e", "/var/lib/nodeagent.newer/store.db").returncode == 0


def test_watchdog_restarts_a_stopped_daemon_with_nothing_lost(
    node: Machine, write_kernel_line: WriteKernelLine
) -> None:
    before, during, after = new_device(), new_device(), new_device()
    write_kernel_line(fallen_off_the_bus(before))
    events_before = events_once_open(node, before)
    stopped = node.property_of(UNIT, "MainPID")

    node.run("systemctl", "kill", "--kill-whom=main", "--signal=STOP", UNIT)
    write_kernel_line(fallen_off_the_bus(during))
    until(lambda: node.property_of(UNIT, "NRestarts"), lambda restarts: restarts == "1")
    until(lambda: node.property_of(UNIT, "ActiveState"), lambda state: state == "active")
    write_kernel_line(fallen_off_the_bus(after))

    events = events_once_open(node, after, before, during)
    assert node.property_of(UNIT, "MainPID") != stopped
    assert raised(events) == [(before, "XID_79"), (during, "XID_79"), (after, "XID_79")]
    assert events[: len(events_before)] == events_before
    every = [json.loads(line)["seq"] for line in node.read("nodeagent", "events", "-o", "json").splitlines()]
    assert every == list(range(every[0], every[0] + len(every)))
    assert "Watchdog timeout" in node.read("journalctl", "--unit", UNIT, "--no-pager")


def test_without_the_emulators_package_its_command_says_what_to_install(node: Machine) -> None:
    refused = node.run("nodeagent", "emulator", "show", check=False)

    assert refused.returncode == 1
    assert (
        refused.stderr == "nodeagent: emulator: not installed here; install the package nodeagent-emulator\n"
    )


def test_the_daemon_finds_the_chips_of_the_emulator_once_that_is_installed(
    node: Machine, emulator_package: Path
) -> None:
    node.write("/root/nodeagent-emulator.deb", emulator_package.read_bytes())
    node.run("dpkg", "--install", "/root/nodeagent-emulator.deb")
    node.run("systemd-run", "--unit=emulator", "nodeagent", "emulator", "start", "8x910B")
    until(
        lambda: node.run("nodeagent", "emulator", "show", check=False).returncode,
        lambda status: status == 0,
    )
    node.write("/etc/nodeagent-test.toml", configured(EMULATED))

    node.run("systemctl", "restart", UNIT)

    with node.client() as client:
        found = until(
            lambda: [each.name for each in client.devices() if each.name.startswith("npu")],
            lambda names: len(names) == 8,
        )
    assert "npu7" in found
    node.run("systemctl", "stop", "emulator")
    node.run("dpkg", "--remove", "nodeagent-emulator")


def test_an_upgrade_keeps_the_sites_configuration_and_goes_on_where_the_version_before_was(
    node: Machine, next_package: Path, write_kernel_line: WriteKernelLine
) -> None:
    before, after = new_device(), new_device()
    write_kernel_line(fallen_off_the_bus(before))
    shown = events_once_open(node, before)
    process, sites = node.property_of(UNIT, "MainPID"), '[metrics]\nlisten = ""\n'
    node.write("/etc/nodeagent/nodeagent.toml", sites)
    node.write("/root/next.deb", next_package.read_bytes())

    node.run("dpkg", "--install", "--force-confdef", "--force-confold", "/root/next.deb")
    write_kernel_line(fallen_off_the_bus(after))

    events = events_once_open(node, after, before)
    every = [json.loads(line)["seq"] for line in node.read("nodeagent", "events", "-o", "json").splitlines()]
    status = json.loads(node.read("nodeagent", "status", "-o", "json"))
    assert node.read("dpkg-query", "--show", "--showformat=${Version}", "nodeagent").endswith("+next")
    assert node.property_of(UNIT, "MainPID") != process
    assert node.read("cat", "/etc/nodeagent/nodeagent.toml") == sites.strip()
    assert events[: len(shown)] == shown
    assert raised(events) == [(before, "XID_79"), (after, "XID_79")]
    assert every == list(range(every[0], every[0] + len(every)))
    assert {f"{before}.0", f"{after}.0"} <= {open_["device"] for open_ in status["conditions"]}


def test_an_upgrade_starts_nothing_that_the_administrator_has_switched_off(
    node: Machine, next_package: Path
) -> None:
    node.run("systemctl", "disable", "--now", UNIT)

    node.run("dpkg", "--install", "--force-confdef", "--force-confold", "/root/next.deb")

    assert node.property_of(UNIT, "UnitFileState") == "disabled"
    assert node.property_of(UNIT, "ActiveState") == "inactive"
    assert node.run("test", "-e", "/run/nodeagent/nodeagent.sock", check=False).returncode == 1


def test_a_purge_waits_for_a_reset_and_tells_what_is_out_of_service_and_leaves_only_the_groups(
    node: Machine,
) -> None:
    node.run("systemctl", "enable", "--now", UNIT)
    node.run("nodeagent", "isolate", "node", "--owner", "rack-team", "--reason", "RMA 4711")
    lock = "/run/nodeagent/reset_unit/npu3.1.lock"
    node.run("mkdir", "--parents", "/run/nodeagent/reset_unit")
    node.run("systemd-run", "--unit=reset", "flock", lock, "sleep", "5")
    until(
        lambda: node.run("flock", "--nonblock", lock, "true", check=False).returncode, lambda held: held == 1
    )

    purged = node.run("dpkg", "--purge", "nodeagent")

    assert re.search(rf"nodeagent: waiting for a reset that is under way: {lock}; \d s so far", purged.stderr)
    assert (
        "nodeagent: out of service here, and nobody keeps work away from it once nodeagent is removed:\n"
        "nodeagent:   isolated: node by rack-team: RMA 4711\n" in purged.stderr
    )
    places = (
        "/etc/nodeagent",
        "/etc/systemd/system/*.wants/nodeagent*",
        "/usr/lib/nodeagent",
        "/usr/share/nodeagent",
        "/usr/share/doc/nodeagent",
        "/var/lib/nodeagent",
        "/var/lib/nodeagent-reset",
        "/var/lib/systemd/deb-systemd-helper-enabled/*nodeagent*",
        "/var/cache/nodeagent",
        "/run/nodeagent*",
    )
    assert node.below(*places) == []
    assert node.property_of(UNIT, "LoadState") == "not-found"
    assert node.read("getent", "group", "nodeagent").startswith("nodeagent:")
