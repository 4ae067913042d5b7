"""The clients of shared storage, by their files."""

import os
from pathlib import Path

import pytest

from nodeagent.drivers.host.storage_clients import LASTS_S, MAX_BYTES, StorageClients
from tests.daemon.staged import put
from tests.drivers.host.node_tree import NodeTree


class Time:
    now_s = 50.0


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def clients(node: NodeTree, clock: Time) -> StorageClients:
    return StorageClients(node.root, lambda: clock.now_s)


def codes(clients: StorageClients) -> list[str]:
    active = clients.look().active
    assert {device for device, _ in active} <= {"node"}
    return [code for _, code in active]


def test_a_node_without_clients_has_no_fault(clients: StorageClients) -> None:
    assert (clients.is_here(), codes(clients)) == (False, [])


def test_a_failed_process_of_dpc_is_a_fault_until_it_is_back(node: NodeTree, clients: StorageClients) -> None:
    file = node.dpc({1: (0, 0), 2: (0, -1)})
    assert clients.is_here()
    assert clients.look().active == {("node", "110001020"): {"file": str(file), "instances": "2"}}

    node.dpc({1: (0, 0), 2: (0, 0)})
    assert codes(clients) == []


def test_dtfs_has_a_code_for_its_process_and_one_for_its_link(
    node: NodeTree, clients: StorageClients
) -> None:
    node.dtfs(process=-1, link=0)
    assert codes(clients) == ["110001022"]
    node.dtfs(process=0, link=-1)
    assert codes(clients) == ["110001023"]
    node.dtfs(process=0, link=0)
    assert codes(clients) == []


def test_shortage_of_memory_has_to_last_and_so_has_its_end(
    node: NodeTree, clients: StorageClients, clock: Time
) -> None:
    short, well = {1: (-12, 0), 2: (0, 0)}, {1: (0, 0), 2: (0, 0)}
    node.dpc(short)
    assert codes(clients) == []
    clock.now_s += LASTS_S - 1
    assert codes(clients) == []
    clock.now_s += 1
    assert codes(clients) == ["110001021"]

    node.dpc(well)
    assert codes(clients) == ["110001021"]
    clock.now_s += LASTS_S - 1
    assert codes(clients) == ["110001021"]
    clock.now_s += 1
    assert codes(clients) == []


def test_shortage_that_comes_and_goes_begins_anew_each_time(
    node: NodeTree, clients: StorageClients, clock: Time
) -> None:
    for memory in (-12, 0, -12):
        node.dpc({1: (memory, 0)})
        assert codes(clients) == []
        clock.now_s += LASTS_S - 1
    assert codes(clients) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[instidx=1]\n",
        "[instidx=1]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 1\n",
        "[instidx=1]\nDPC_PROCESS_ERROR: 0\nDPC_INTERNAL_ERROR: 0\n",
        "[instidx=x]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n",
        "[instidx=1]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: 0\n[instidx=2]\n",
        "\N{FULLWIDTH DIGIT ZERO}",
        "x" * MAX_BYTES,
    ],
)
def test_a_file_that_makes_no_sense_leaves_what_it_said_before(
    node: NodeTree, clients: StorageClients, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    file = node.dpc({1: (0, -1)})
    assert codes(clients) == ["110001020"]
    file.write_text(text)

    assert codes(clients) == codes(clients) == ["110001020"]
    assert capfd.readouterr().err.count(f"{file} is not believed: ") == 1


def test_a_file_that_others_may_write_is_not_believed(
    node: NodeTree, clients: StorageClients, capfd: pytest.CaptureFixture[str]
) -> None:
    file = node.dpc({1: (0, -1)})
    file.chmod(0o666)
    assert codes(clients) == []
    assert "writable for no other" in capfd.readouterr().err

    file.chmod(0o644)
    os.chown(file, 65534, -1)
    assert codes(clients) == []


def test_what_is_no_plain_file_holds_nobody_up(
    node: NodeTree, clients: StorageClients, tmp_path: Path
) -> None:
    file = node.dpc({1: (0, -1)})
    file.unlink()
    os.mkfifo(file)
    assert codes(clients) == []

    file.unlink()
    put(tmp_path / "elsewhere", "[instidx=1]\nDPC_INTERNAL_ERROR: 0\nDPC_PROCESS_ERROR: -1\n")
    file.symlink_to(tmp_path / "elsewhere")
    assert codes(clients) == []


def test_a_client_that_is_taken_off_the_node_has_no_fault_any_more(
    node: NodeTree, clients: StorageClients
) -> None:
    file = node.dpc({1: (0, -1)})
    assert codes(clients) == ["110001020"]

    file.unlink()

    assert codes(clients) == []
