"""The rpm, installed in a machine that systemd booted: it does there what the Debian package does.

The machine is a Debian tree with rpm in it. What it cannot show: the packages, presets and file triggers of a
distribution that is made of rpms.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from nodeagent.store.layout import SCHEMA_VERSION
from tests.e2e.installed_node import name_schema
from tests.e2e.machine import KMSG, Machine, booted, until
from tests.e2e.tree import laid_over

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

UNIT = "nodeagent.service"
LOCK = "/run/nodeagent/reset_unit/npu3.1.lock"
SITES = '[metrics]\nlisten = ""\n'
DROP_IN = f"""
[Service]
Environment=NODEAGENT_CONFIG=/etc/nodeagent-test.toml
DeviceAllow={KMSG} r
"""
CONFIGURATION = f"""
[drivers.kmsg]
path = "{KMSG}"
"""


@pytest.fixture(scope="module")
def node(
    rpm_package: Path, next_rpm_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    with laid_over(tmp_path_factory.mktemp("node")) as root, booted(root) as machine:
        machine.write("/etc/nodeagent-test.toml", CONFIGURATION)
        machine.write(f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        machine.write("/root/nodeagent.rpm", rpm_package.read_bytes())
        machine.write("/root/next.rpm", next_rpm_package.read_bytes())
        install(machine)
        yield machine


def rpm(node: Machine, *arguments: str, check: bool = True, limit_s: int = 900) -> CompletedProcess[str]:
    """Without the dependencies: the machine is made of other packages."""
    limit = f"NODEAGENT_RESET_LIMIT_S={limit_s}"
    return node.run("env", limit, "rpm", "--force-debian", "--nodeps", *arguments, check=check)


def install(node: Machine) -> None:
    said = rpm(node, "-i", "/root/nodeagent.rpm")
    assert "scriptlet failed" not in said.stderr


def upgrade(node: Machine, *options: str, to: str = "next") -> None:
    said = rpm(node, "-U", *options, f"/root/{to}.rpm")
    assert "scriptlet failed" not in said.stderr


def version(node: Machine) -> str:
    return node.read("rpm", "-q", "--qf", "%{VERSION}", "nodeagent")


def status(node: Machine) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "status", "-o", "json"))
    return shown


def events(node: Machine) -> list[dict[str, Any]]:
    lines = node.read("nodeagent", "events", "--after", "0", "-o", "json").splitlines()
    return [json.loads(line) for line in lines]


def is_there(node: Machine, path: str) -> bool:
    return node.run("test", "-e", path, check=False).returncode == 0


@contextlib.contextmanager
def reset_under_way(node: Machine) -> Iterator[None]:
    node.run("mkdir", "--parents", str(Path(LOCK).parent))
    node.run("systemd-run", "--unit=reset", "flock", LOCK, "sleep", "600")
    until(
        lambda: node.run("flock", "--nonblock", LOCK, "true", check=False).returncode, lambda held: held == 1
    )
    try:
        yield
    finally:
        node.run("systemctl", "stop", "reset")


def test_installing_starts_and_enables_the_service(node: Machine) -> None:
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert node.property_of(UNIT, "UnitFileState") == "enabled"
    assert node.property_of("nodeagent-slurm.service", "UnitFileState") == "disabled"
    assert node.property_of(UNIT, "NRestarts") == "0"


def test_all_lies_there_as_it_was_packed(node: Machine) -> None:
    assert node.read("rpm", "-V", "--nodeps", "nodeagent") == ""


def test_sockets_are_for_their_groups_only(node: Machine) -> None:
    names = [f"/run/nodeagent/{name}.sock" for name in ("nodeagent", "control")]

    listed = node.read("stat", "-c", "%a %G", *names)

    assert listed.splitlines() == ["660 nodeagent", "660 nodeagent-admin"]


@pytest.mark.parametrize("arguments", [("-e", "nodeagent"), ("-U", "/root/next.rpm")])
def test_nothing_begins_while_a_reset_does_not_end(node: Machine, arguments: tuple[str, str]) -> None:
    before = version(node)

    with reset_under_way(node):
        done = rpm(node, *arguments, check=False, limit_s=2)

    assert done.returncode != 0
    assert f"nodeagent: waiting for a reset that is under way: {LOCK}; 0 s so far, 2 s at most" in done.stderr
    assert f"nodeagent: a reset is under way and still holds {LOCK}: try again" in done.stderr
    assert version(node) == before
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert status(node)["holds"] == []
    assert node.read("rpm", "-V", "--nodeps", "nodeagent") == ""


def test_a_version_that_cannot_read_the_store_is_refused_before_anything_is_changed(node: Machine) -> None:
    before = version(node)
    node.run("systemctl", "stop", UNIT)
    name_schema(node, SCHEMA_VERSION + 1)

    done = rpm(node, "-U", "/root/next.rpm", check=False)

    name_schema(node, SCHEMA_VERSION)
    node.run("systemctl", "start", UNIT)
    assert done.returncode != 0
    assert (
        "nodeagent: /var/lib/nodeagent/store.db was written by a newer nodeagent: it has schema"
        f" {SCHEMA_VERSION + 1}, and this version knows {SCHEMA_VERSION}." in done.stderr
    )
    assert version(node) == before
    assert node.read("rpm", "-V", "--nodeps", "nodeagent") == ""


def test_an_upgrade_keeps_the_sites_configuration_and_goes_on_where_the_version_before_was(
    node: Machine,
) -> None:
    shown, process = events(node), node.property_of(UNIT, "MainPID")
    node.write("/etc/nodeagent/nodeagent.toml", SITES)

    upgrade(node)

    assert version(node) == "99.0.0"
    assert node.property_of(UNIT, "MainPID") != process
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert status(node)["holds"] == []
    assert node.read("cat", "/etc/nodeagent/nodeagent.toml") == SITES.strip()
    assert "The next version explains more" in node.read("cat", "/etc/nodeagent/nodeagent.toml.rpmnew")
    (differs,) = node.run("rpm", "-V", "--nodeps", "nodeagent", check=False).stdout.splitlines()
    assert differs.split()[1:] == ["c", "/etc/nodeagent/nodeagent.toml"]
    assert events(node)[: len(shown)] == shown != []
    assert not is_there(node, "/usr/share/doc/nodeagent/CHANGELOG.md")


def test_the_same_version_can_be_installed_again(node: Machine) -> None:
    process = node.property_of(UNIT, "MainPID")

    upgrade(node, "--replacepkgs")

    assert node.property_of(UNIT, "MainPID") != process
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert status(node)["holds"] == []


def test_an_upgrade_starts_nothing_that_the_administrator_has_switched_off(node: Machine) -> None:
    node.run("systemctl", "disable", "--now", UNIT)

    upgrade(node, "--oldpackage", to="nodeagent")

    assert version(node) != "99.0.0"
    assert node.property_of(UNIT, "UnitFileState") == "disabled"
    assert node.property_of(UNIT, "ActiveState") == "inactive"


def test_a_removal_leaves_the_store_and_what_the_site_has_written(node: Machine) -> None:
    node.run("systemctl", "enable", "--now", UNIT)
    node.write("/etc/nodeagent/fault_codes/site.toml", "")

    said = rpm(node, "-e", "nodeagent")

    folders = ("/etc/nodeagent", "/usr/lib/nodeagent", "/usr/share/nodeagent", "/usr/share/doc/nodeagent")
    assert "scriptlet failed" not in said.stderr
    assert node.below(*folders, "/run/nodeagent*") == [
        "/etc/nodeagent",
        "/etc/nodeagent/fault_codes",
        "/etc/nodeagent/fault_codes/site.toml",
        "/etc/nodeagent/nodeagent.toml.rpmnew",
        "/etc/nodeagent/nodeagent.toml.rpmsave",
    ]
    assert node.read("cat", "/etc/nodeagent/nodeagent.toml.rpmsave") == SITES.strip()
    assert node.property_of(UNIT, "LoadState") == "not-found"
    assert not is_there(node, f"/etc/systemd/system/multi-user.target.wants/{UNIT}")
    assert is_there(node, "/var/lib/nodeagent/last-good.toml")


def test_a_site_may_say_beforehand_that_the_service_is_not_started(node: Machine) -> None:
    node.write("/etc/systemd/system-preset/00-site.preset", f"disable {UNIT}\n")

    install(node)

    assert node.property_of(UNIT, "UnitFileState") == "disabled"
    assert node.property_of(UNIT, "ActiveState") == "inactive"
