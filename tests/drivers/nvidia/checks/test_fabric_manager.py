"""The fabric manager is missed where switches need it, and nowhere else."""

from pathlib import Path

import pytest

from nodeagent.drivers.nvidia.checks.fabric import Manager


def process(procfs: Path, pid: int, name: str) -> Path:
    folder = procfs / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    return folder


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    """Of a whole node, with programs on it."""
    for pid, name in ((1, "systemd"), (2, "kthreadd"), (800, "python3")):
        process(tmp_path / "proc", pid, name)
    return tmp_path / "proc"


def port(sysfs: Path, data: bytes) -> None:
    folder = sysfs / "class/infiniband/mlx5_4/device"
    folder.mkdir(parents=True)
    (folder / "vpd").write_bytes(data)


def test_it_is_not_missed_where_there_is_no_switch(procfs: Path, tmp_path: Path) -> None:
    port(tmp_path / "sys", b"V3 ConnectX-7 SMDL=NIC")
    assert Manager(procfs, tmp_path / "sys").look(switches=False) is None


def test_it_is_seen_to_end_and_to_begin_anew(
    procfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeagent.drivers.nvidia.checks.fabric.LOOK_S", 0.0)
    running = process(procfs, 4711, "nv-fabricmanage")
    manager = Manager(procfs, tmp_path)
    assert manager.look(switches=True) is True
    (running / "comm").write_text("sleep\n")
    assert manager.look(switches=True) is False
    process(procfs, 4712, "nv-fabricmanage")
    assert manager.look(switches=True) is True


def test_switches_behind_a_network_port_need_it_too(procfs: Path, tmp_path: Path) -> None:
    port(tmp_path / "sys", b"V3 ConnectX-7 SMDL=SW_MNG")
    assert Manager(procfs, tmp_path / "sys").look(switches=False) is False


def test_who_does_not_see_all_processes_of_the_node_tells_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container: process 2 is another, or hidden."""
    process(tmp_path, 1, "python3")
    manager = Manager(tmp_path, tmp_path)
    assert [manager.look(switches=True), manager.look(switches=True)] == [None, None]
    assert capsys.readouterr().err.count("not watched") == 1


def test_a_process_of_any_name_disturbs_nothing(procfs: Path, tmp_path: Path) -> None:
    (process(procfs, 900, "odd") / "comm").write_bytes(b"\xff\xfe\n")
    process(procfs, 4711, "nv-fabricmanage")
    assert Manager(procfs, tmp_path).look(switches=True) is True


def configured(root: Path, mode: int, path: str = "usr/share/nvidia/nvswitch/fabricmanager.cfg") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"# FABRIC_MODE=1\nFABRIC_MODE = {mode}\n")


@pytest.mark.parametrize(("mode", "is_shared"), [(0, False), (1, True), (2, True)])
def test_its_configuration_says_whether_tenants_share_the_switches(
    procfs: Path, tmp_path: Path, mode: int, is_shared: bool
) -> None:
    configured(tmp_path / "driver", mode)
    assert Manager(procfs, tmp_path, str(tmp_path / "driver")).is_shared() is is_shared


def test_the_configuration_of_the_process_that_runs_counts(procfs: Path, tmp_path: Path) -> None:
    running = process(procfs, 4711, "nv-fabricmanage")
    (running / "cmdline").write_bytes(b"nv-fabricmanager\0-c\0/etc/fm.cfg\0")
    configured(running / "root", 1, "etc/fm.cfg")
    configured(tmp_path / "driver", 0)
    manager = Manager(procfs, tmp_path, str(tmp_path / "driver"))
    manager.look(switches=True)
    assert manager.is_shared()
