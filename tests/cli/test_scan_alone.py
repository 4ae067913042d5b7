"""scan where no daemon answers: what cannot be read is not good, and what is not there is not waited for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli import self_check
from nodeagent.emulator.node import EmulatedNode
from tests.cli.conftest import Nodeagent
from tests.cli.live import Node


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[EmulatedNode]:
    """Two GPUs, which the configuration does not require; there is nothing of another vendor."""
    configuration = Node.within(tmp_path).configuration
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        section = (
            "[drivers.nvidia]",
            f'library = "{node.nvml}"',
            f'sysfs = "{node.sysfs}"',
            'call_deadline = "3s"',
        )
        with configuration.open("a") as file:
            file.write("\n".join((*section, "")))
        yield node


def test_a_node_whose_devices_all_answer_is_good(nodeagent: Nodeagent, gpus: EmulatedNode) -> None:
    ran = nodeagent("scan", "-o", "json")

    assert (ran.status, ran.json[0]["reasons"]) == (0, [])
    assert [each["name"] for each in ran.json[0]["devices"]] == ["node", "gpu0", "gpu1"]


def test_a_device_that_does_not_answer_is_waited_for_and_then_not_good(
    nodeagent: Nodeagent, gpus: EmulatedNode
) -> None:
    gpus.hang("gpu1")

    ran = nodeagent("scan")

    assert ran.status == 2
    assert ran.out.startswith("could not tell: gpu1: ")
    assert ran.out.endswith("; nvidia: a call has not come back within 3 s\n")


def test_a_library_that_does_not_open_in_time_is_not_good(
    nodeagent: Nodeagent, gpus: EmulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "DEADLINE_S", 8.0)
    gpus.hang()

    ran = nodeagent("scan")

    assert ran.status == 2
    assert "could not tell: nvidia: not read within 8 s" in ran.out.splitlines()
