"""The same Debian package on other releases than the one it was built on, none of which has a Python."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import WriteKernelLine
from tests.e2e.installed_node import (
    UNIT,
    conditions,
    events_of,
    fallen_off_the_bus,
    machine_with,
    new_device,
    raised,
)
from tests.e2e.machine import Machine, until

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["trixie", "bullseye"])
def node(
    request: pytest.FixtureRequest, package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    with machine_with(package, tmp_path_factory.mktemp("node"), request.param) as machine:
        yield machine


def test_it_runs_there_and_is_calm_without_any_python_of_the_system(node: Machine) -> None:
    assert node.run("sh", "-c", "command -v python3", check=False).stdout == ""
    assert node.property_of(UNIT, "ActiveState") == "active"
    assert conditions(node) == {}
    assert node.property_of(UNIT, "NRestarts") == "0"


def test_a_fault_there_is_raised_and_told(node: Machine, write_kernel_line: WriteKernelLine) -> None:
    device = new_device()

    write_kernel_line(fallen_off_the_bus(device))

    events = until(lambda: events_of(node, device), lambda events: (device, "XID_79") in raised(events))
    assert raised(events) == [(device, "XID_79")]


def test_the_journal_of_there_is_read(node: Machine) -> None:
    """systemd-python is compiled once, and links to what libsystemd there is."""
    python = ("/usr/lib/nodeagent/bin/python", "-I", "-c")
    read = "from systemd import journal; print(sum(1 for _ in zip(range(20), journal.Reader())))"

    assert node.read(*python, read) == "20"
