"""The package for arm64 on a processor of that architecture, which QEMU plays: it observes, stores and tells.

The tree has no systemd: what the units add is the same files on each architecture.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import Client, Kind
from tests.e2e.machine import until, write
from tests.e2e.other_processor import OtherProcessor, emulated
from tests.e2e.tree import laid_over

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

FOLDER = "/var/lib/nodeagent/emulator"
PATH = "/etc/nodeagent-test.toml"
SOCKET = "/var/lib/nodeagent/nodeagent.sock"
CONFIGURATION = f"""
[agent]
socket = "{SOCKET}"
control_socket = "/var/lib/nodeagent/control.sock"

[drivers.kmsg]
enabled = false

[drivers.ascend]
library = "{FOLDER}/libdcmi.so"
sysfs = "{FOLDER}/sys"

[drivers.nvidia]
library = "{FOLDER}/libnvidia-ml.so.1"
sysfs = "{FOLDER}/sys"
"""
MULTI_BIT_ECC = "80E01801"


@pytest.fixture(scope="module")
def node(
    arm64_package: Path, arm64_emulator_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherProcessor]:
    """With the emulator and the daemon running."""
    with laid_over(tmp_path_factory.mktemp("arm64"), foreign="arm64") as root:
        for package in (arm64_package, arm64_emulator_package):
            subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
        write(root, PATH, CONFIGURATION)
        (root / FOLDER.lstrip("/")).mkdir(parents=True)
        with (
            emulated(root) as processor,
            processor.running("nodeagent", "emulator", "start", "4x910B+4xH100", "--directory", FOLDER),
        ):
            until(lambda: emulator(processor, "show").returncode, lambda status: status == 0)
            with processor.running("nodeagent", "run", "--config", PATH) as log:
                until((root / SOCKET.lstrip("/")).exists, bool)
                until(lambda: observed(root), lambda devices: len(devices) == 8)
                yield processor
                assert "Traceback" not in log.read_text()


def emulator(node: OtherProcessor, *request: str) -> "subprocess.CompletedProcess[str]":
    return node.run("nodeagent", "emulator", *request, "--directory", FOLDER, check=False)


def observed(root: Path) -> list[str]:
    """The chips that the daemon observes, by its own interface, asked from outside."""
    with Client(str(root / SOCKET.lstrip("/"))) as client:
        return sorted(each.name for each in client.devices() if each.observed and each.kind is Kind.CHIP)


def events(node: OtherProcessor) -> list[dict[str, Any]]:
    told = node.run("nodeagent", "events", "--socket", SOCKET, "-o", "json").stdout
    return [json.loads(line) for line in told.splitlines()]


def test_it_is_of_that_architecture_and_needs_no_python_of_the_system(node: OtherProcessor) -> None:
    told = node.run("/usr/lib/nodeagent/bin/python", "-c", "import platform; print(platform.machine())")

    assert told.stdout == "aarch64\n"
    assert list(node.root.glob("usr/bin/python*")) == []


def test_each_source_is_observed_by_a_worker_of_its_own(node: OtherProcessor) -> None:
    assert observed(node.root) == [f"{kind}{number}" for kind in ("gpu", "npu") for number in range(4)]


def test_a_fault_is_raised_stored_and_told(node: OtherProcessor) -> None:
    emulator(node, "raise", "npu3", MULTI_BIT_ECC)

    raised = until(
        lambda: [each for each in events(node) if each["kind"] == "raised" and each["device"] == "npu3"], bool
    )
    assert [each["code"] for each in raised] == [MULTI_BIT_ECC]
