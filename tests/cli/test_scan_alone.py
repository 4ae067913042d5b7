"""scan where no daemon answers: the sources are read, and what is not there is not waited for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli import self_check
from nodeagent.cli.emulator import configuration_of
from nodeagent.emulator.node import EmulatedNode
from tests.cli.conftest import Nodeagent
from tests.cli.live import Node


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[EmulatedNode]:
    """Two GPUs, which the configuration does not require; there is nothing of another vendor."""
    configuration = Node.within(tmp_path).configuration
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        with configuration.open("a") as file:
            file.write(f'{configuration_of(node)}\ncall_deadline = "2s"\n')
        yield node


def test_a_node_whose_devices_all_answer_is_good(nodeagent: Nodeagent, gpus: EmulatedNode) -> None:
    text, ran = nodeagent("scan"), nodeagent("scan", "-o", "json")

    assert (text.status, text.out, text.err) == (0, "good: 2 GPUs and the node\n", "")
    assert (ran.status, ran.json[0]["reasons"]) == (0, [])
    assert [each["name"] for each in ran.json[0]["devices"]] == ["node", "gpu0", "gpu1"]


def test_a_device_that_does_not_answer_is_waited_for_and_then_not_good(
    nodeagent_process: Nodeagent, gpus: EmulatedNode
) -> None:
    gpus.hang("gpu1")

    ran = nodeagent_process("scan")

    why = "Driver does not answer; nvidia: a call has not come back within 2 s"
    assert (ran.status, ran.out, ran.err) == (2, f"could not tell: gpu1: {why}\n", "")


def test_what_is_unknown_is_told_beside_what_is_faulty(nodeagent: Nodeagent, gpus: EmulatedNode) -> None:
    gpus.hang("gpu1")
    gpus.set("gpu0", "gpu_recovery_action", 2)

    ran = nodeagent("scan")

    assert ran.status == 1
    first, second = ran.out.splitlines()
    assert first.startswith("faulty: gpu0 ISOLATE: ")
    assert second.startswith("could not tell: gpu1: Driver does not answer; ")


def test_a_library_that_does_not_open_in_time_is_not_good(
    nodeagent: Nodeagent, gpus: EmulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "DEADLINE_S", 6.0)
    gpus.hang()

    ran = nodeagent("scan")

    assert (ran.status, ran.out) == (2, "could not tell: nvidia: not read within 6 s\n")
