"""scan where no daemon answers: the sources are read, and what is not there is not waited for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli.ask import self_check
from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.node import EmulatedNode
from tests.cli.conftest import Nodeagent
from tests.harness.node import Node


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[EmulatedNode]:
    """Two GPUs, which the configuration does not require; there is nothing of another vendor."""
    others = "[drivers.ascend]\n[drivers.unifiedbus]\n"
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        Node.within(tmp_path, f'{others}{configuration_of(node)}\ncall_deadline = "2s"\n')
        yield node


def test_a_node_whose_devices_all_answer_is_good(nodeagent: Nodeagent, gpus: EmulatedNode) -> None:
    text, ran = nodeagent("scan"), nodeagent("scan", "-o", "json")

    assert (text.status, text.out) == (0, "good: 2 GPUs and the node\n")
    assert (ran.status, ran.json[0]["reasons"]) == (0, [])
    assert [each["name"] for each in ran.json[0]["devices"]] == ["node", "gpu0", "gpu1"]


def test_a_device_that_does_not_answer_is_waited_for_and_then_not_good(
    nodeagent_process: Nodeagent, gpus: EmulatedNode
) -> None:
    gpus.hang("gpu1")

    ran = nodeagent_process("scan")

    why = "Driver does not answer; nvidia: no answer within 2 s"
    assert (ran.status, ran.out) == (2, f"unknown: gpu1: {why}\n")


def test_a_bmc_that_does_not_answer_leaves_the_node_good(nodeagent: Nodeagent, gpus: EmulatedNode) -> None:
    gpus.bmc.answer("silent")

    ran = nodeagent("scan")

    assert (ran.status, ran.out) == (0, "good: 2 GPUs and the node\n")


def test_unknown_devices_are_shown_with_the_faulty_ones(nodeagent: Nodeagent, gpus: EmulatedNode) -> None:
    gpus.hang("gpu1")
    gpus.set("gpu0", "gpu_recovery_action", 2)

    ran = nodeagent("scan")

    assert ran.status == 1
    first, second = ran.out.splitlines()
    assert first.startswith("faulty: gpu0 ISOLATE: ")
    assert second.startswith("unknown: gpu1: Driver does not answer; ")


def test_a_library_that_does_not_open_in_time_is_not_good(
    nodeagent: Nodeagent, gpus: EmulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "OPEN_DEADLINE_S", 6.0)
    gpus.hang()

    ran = nodeagent("scan")

    assert (ran.status, ran.out) == (2, "unknown: nvidia: its driver was not open after 6 s\n")
    assert "nvidia: waiting for its driver to open, for 6 s at most" in ran.err.splitlines()


def test_gpus_that_open_slowly_are_waited_for(
    nodeagent: Nodeagent, gpus: EmulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without persistence mode the driver takes seconds to open each."""
    monkeypatch.setattr(self_check, "READ_DEADLINE_S", 3.0)
    monkeypatch.setattr(self_check, "REPORT_AFTER_S", 2.0)
    for name in gpus.names():
        gpus.set(name, "gpu_persistence_mode", 0)
        gpus.set(name, "gpu_discovery_ms", 2500)

    ran = nodeagent("scan")

    assert (ran.status, ran.out) == (0, "good: 2 GPUs and the node\n")
    assert "nvidia: waiting for its driver to open, for 60 s at most" in ran.err.splitlines()
