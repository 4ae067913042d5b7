"""An upgrade of the distribution with the package installed, as an administrator does it: by apt, from Debian
12 to 13, in a machine that runs meanwhile. It has no Python before, and none afterwards.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import WriteKernelLine
from tests.e2e.installed_node import (
    CONFIGURATION,
    DROP_IN,
    UNIT,
    events_of,
    fallen_off_the_bus,
    new_device,
    raised,
    status,
)
from tests.e2e.machine import Machine, booted, until, write
from tests.e2e.tree import laid_over

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(1200)]

FROM, TO = "bookworm", "trixie"
UPGRADE = ("apt-get", "--yes", "--no-download", "--option=Dpkg::Options::=--force-confdef", "dist-upgrade")


@pytest.fixture(scope="module")
def root(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tree of the release before, with all packages of the next one at hand: the machine has no network."""
    with laid_over(tmp_path_factory.mktemp("node"), suite=FROM) as root:
        sources = root / "etc/apt/sources.list"
        sources.write_text(sources.read_text().replace(FROM, TO))
        apt(root, "update")
        apt(root, "--yes", "--download-only", "dist-upgrade")
        write(root, "/etc/nodeagent-test.toml", CONFIGURATION)
        write(root, f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        write(root, "/root/nodeagent.deb", package.read_bytes())
        yield root


def apt(root: Path, *words: str) -> None:
    done = subprocess.run(["chroot", root, "apt-get", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def isolations(node: Machine) -> list[tuple[str, str, str]]:
    return sorted((hold["device"], hold["owner"], hold["reason"]) for hold in status(node)["holds"])


def verdict_of(node: Machine, device: str) -> str:
    (found,) = [each["verdict"] for each in status(node)["devices"] if each["name"] == f"{device}.0"]
    return str(found)


def test_the_package_is_kept_and_runs_on_with_all_that_it_keeps_away_from_work(
    root: Path, write_kernel_line: WriteKernelLine
) -> None:
    isolated, broken, later = new_device(), new_device(), new_device()
    with booted(root) as node:
        node.run("dpkg", "--install", "/root/nodeagent.deb")
        for device in (isolated, broken):
            write_kernel_line(fallen_off_the_bus(device))
        until(lambda: raised(events_of(node, isolated, broken)), lambda events: len(events) == 2)
        node.run("nodeagent", "isolate", f"{isolated}.0", "--owner", "rack-team", "--reason", "RMA 4711")
        version = node.read("dpkg-query", "--show", "--showformat=${Version}", "nodeagent")
        before = events_of(node, isolated, broken)

        upgraded = node.run("env", "DEBIAN_FRONTEND=noninteractive", *UPGRADE, timeout_s=900)

        assert (
            "nodeagent" not in upgraded.stdout.partition("will be REMOVED:")[2].partition("NEW packages")[0]
        )
        assert node.read("cat", "/etc/debian_version").startswith("13")
        assert node.run("sh", "-c", "command -v python3", check=False).stdout == ""
        shown = node.read("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "nodeagent")
        assert shown == f"installed {version}"
        assert node.property_of(UNIT, "ActiveState") == "active"
        assert isolations(node) == [(f"{isolated}.0", "rack-team", "RMA 4711")]
        assert (verdict_of(node, isolated), verdict_of(node, broken)) == ("ISOLATE", "ISOLATE")
        assert events_of(node, isolated, broken)[: len(before)] == before

    with booted(root) as node:
        assert node.read("systemctl", "--version").startswith("systemd 257")
        assert node.property_of(UNIT, "ActiveState") == "active"
        assert node.property_of(UNIT, "NRestarts") == "0"
        assert isolations(node) == [(f"{isolated}.0", "rack-team", "RMA 4711")]
        assert events_of(node, isolated, broken)[: len(before)] == before
        write_kernel_line(fallen_off_the_bus(later))
        until(lambda: events_of(node, later), lambda events: (later, "XID_79") in raised(events))
