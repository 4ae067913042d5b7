"""The job of a process of Slurm whose cgroup has no number: by the prolog's record. In a tree such as /."""

from pathlib import Path

import pytest

from nodeagent.system.job_cgroups import job_of_process
from nodeagent.system.slurm_jobs import step_above
from tests.cgroups import make_folders

pytestmark = pytest.mark.root

SLUID = "sEKNKTV3WPV500"
BY_SLUID = f"0::/system.slice/slurmstepd.scope/{SLUID}/step_0/user/task_0"
DAEMON, RANK = 41, 42


def record(root: Path, name: str, number: int) -> Path:
    folder = root / "run/nodeagent/slurm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"{number}\n")
    return folder / name


def process(
    root: Path,
    pid: int,
    parent: int,
    *,
    uid: int = 0,
    command: str = "python3",
    title: str = "",
    at: str = "0::/",
) -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({command}) S {parent} 1 1 0 -1 0 0 0 0 0 5 0 0 0 20 0 9 0 1 0 0\n")
    (folder / "status").write_text(f"Name:\t{command}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    (folder / "cmdline").write_text(title)
    (folder / "cgroup").write_text(f"{at}\n")


def test_a_sluid_has_the_number_that_the_prolog_has_recorded(tmp_path: Path) -> None:
    process(tmp_path, RANK, 1, at=BY_SLUID)
    make_folders(tmp_path / "sys/fs/cgroup", f"{BY_SLUID}\n")
    assert job_of_process(tmp_path / "proc", RANK) == f"slurm:{SLUID}.0"
    record(tmp_path, SLUID, 123)
    assert job_of_process(tmp_path / "proc", RANK) == "slurm:123.0"


@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_record_that_others_may_write_does_not_count(tmp_path: Path, mode: int) -> None:
    process(tmp_path, RANK, 1, at=BY_SLUID)
    make_folders(tmp_path / "sys/fs/cgroup", f"{BY_SLUID}\n")
    record(tmp_path, SLUID, 123).chmod(mode)
    assert job_of_process(tmp_path / "proc", RANK) == f"slurm:{SLUID}.0"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("slurmstepd: [7.0]\0\0", "slurm:7.0"),
        ("slurmstepd: [7.batch]", "slurm:7.batch"),
        ("slurmstepd: [7.0+1]", "slurm:7.0+1"),
        ("slurmstepd: [7.batch stepmgr]", "slurm:7.batch"),
        ("slurmstepd: [8.0]", ""),
        ("slurmstepd infinity", ""),
        ("slurmstepd: [7.0] x", ""),
    ],
)
def test_the_step_is_that_of_the_daemon_above_if_the_prolog_has_its_user(
    tmp_path: Path, title: str, name: str
) -> None:
    record(tmp_path, "7", 1000)
    process(tmp_path, DAEMON, 1, command="slurmstepd", title=title)
    process(tmp_path, RANK, DAEMON, uid=1000)
    assert job_of_process(tmp_path / "proc", RANK) == name


def test_nobody_gets_the_name_of_another_users_job(tmp_path: Path) -> None:
    record(tmp_path, "7", 1000)
    process(tmp_path, DAEMON, 1, command="slurmstepd", title="slurmstepd: [7.0]")
    process(tmp_path, RANK, DAEMON, uid=1001)
    assert job_of_process(tmp_path / "proc", RANK) == ""
    assert step_above(tmp_path / "proc", RANK) == "slurm:7.0"


def test_a_step_daemon_that_is_a_users_does_not_count(tmp_path: Path) -> None:
    record(tmp_path, "7", 1000)
    process(tmp_path, DAEMON, 1, uid=1000, command="slurmstepd", title="slurmstepd: [7.0]")
    process(tmp_path, RANK, DAEMON, uid=1000)
    assert job_of_process(tmp_path / "proc", RANK) == ""
