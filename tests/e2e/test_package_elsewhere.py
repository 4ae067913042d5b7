"""The same Debian package on other releases than the one it was built on, none of which has a Python."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WriteKernelLine
from tests.e2e.machine import Machine, booted, until
from tests.e2e.test_package_boot import CONFIGURATION, DROP_IN, UNIT, fallen_off_the_bus, new_device
from tests.e2e.tree import laid_over

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["trixie", "bullseye"])
def node(
    request: pytest.FixtureRequest, package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A booted machine of that release with the package installed."""
    with (
        laid_over(tmp_path_factory.mktemp("node"), suite=request.param) as root,
        booted(root) as machine,
    ):
        machine.write("/etc/nodeagent-test.toml", CONFIGURATION)
        machine.write(f"/etc/systemd/system/{UNIT}.d/test.conf", DROP_IN)
        machine.write("/root/nodeagent.deb", package.read_bytes())
        machine.run("dpkg", "--install", "/root/nodeagent.deb")
        yield machine


def test_it_runs_there_and_is_calm_without_any_python_of_the_system(node: Machine) -> None:
    assert node.run("sh", "-c", "command -v python3", check=False).stdout == ""
    assert node.property_of(UNIT, "ActiveState") == "active"
    status = json.loads(node.read("nodeagent", "status", "-o", "json"))
    assert [each["code"] for each in status["conditions"] if each["device"] == "node"] == []
    assert node.property_of(UNIT, "NRestarts") == "0"


def test_a_fault_there_is_raised_and_told(node: Machine, write_kernel_line: WriteKernelLine) -> None:
    device = new_device()

    write_kernel_line(fallen_off_the_bus(device))

    def raised() -> list[dict[str, Any]]:
        told = map(json.loads, node.read("nodeagent", "events", "-o", "json").splitlines())
        return [each for each in told if (each["kind"], each["device"]) == ("raised", f"{device}.0")]

    assert [each["code"] for each in until(raised, bool)] == ["XID_79"]


def test_the_journal_of_there_is_read(node: Machine) -> None:
    """systemd-python is compiled once, and links to what libsystemd there is."""
    python = ("/usr/lib/nodeagent/bin/python", "-I", "-c")
    read = "from systemd import journal; print(sum(1 for _ in zip(range(20), journal.Reader())))"

    assert node.read(*python, read) == "20"
