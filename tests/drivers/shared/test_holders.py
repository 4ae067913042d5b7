"""Who holds a device: processes from trees such as procfs gives, and from the real one."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from nodeagent.drivers.shared.users import cpu_time_s, user_of
from nodeagent.wire import DeviceUser
from tests.cgroups import make_folders
from tests.harness.procfs import SLURM, process


@pytest.mark.root
def test_a_holder_has_start_command_and_job(tmp_path: Path) -> None:
    process(tmp_path / "proc", 1234)
    make_folders(tmp_path / "sys/fs/cgroup", SLURM)
    holder = user_of(tmp_path / "proc", 1234)
    assert holder == DeviceUser(pid=1234, start_time=4711, command="python3", job="slurm:42.0")


def test_a_holder_whose_cgroup_proves_no_job_has_none(tmp_path: Path) -> None:
    process(tmp_path / "proc", 1234)
    holder = user_of(tmp_path / "proc", 1234)
    assert holder == DeviceUser(pid=1234, start_time=4711, command="python3")


def test_a_command_may_look_like_the_fields_behind_it(tmp_path: Path) -> None:
    process(tmp_path, 1, command="a) S 9 (b\x1b", start_time=5)
    holder = user_of(tmp_path, 1)
    assert holder is not None
    assert (holder.command, holder.start_time) == ("a) S 9 (b\N{REPLACEMENT CHARACTER}", 5)


def test_a_process_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert user_of(tmp_path, 1234) is None


def test_a_process_that_goes_while_it_is_read_holds_nothing(tmp_path: Path) -> None:
    (process(tmp_path, 1234) / "cgroup").unlink()
    assert user_of(tmp_path, 1234) is None


def test_another_process_with_the_same_number_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    folder = process(tmp_path, 1234)
    cgroup = (folder / "cgroup").read_text()
    (folder / "cgroup").unlink()
    os.mkfifo(folder / "cgroup")

    def change_hands() -> None:
        with (folder / "cgroup").open("w") as opened:  # waits until the holder's is being read
            process(tmp_path, 1234, start_time=4712)
            opened.write(cgroup)

    other = threading.Thread(target=change_hands)
    other.start()
    assert user_of(tmp_path, 1234) is None
    other.join()


def test_the_real_procfs_tells_of_this_very_process() -> None:
    holder = user_of(Path("/proc"), os.getpid())
    assert holder is not None
    assert holder.pid == os.getpid()
    assert holder.command == Path("/proc/self/comm").read_text().rstrip("\n")
    assert (
        0
        < holder.start_time
        <= int(float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK"))
    )


def test_a_process_that_has_ended_is_gone_from_the_real_procfs() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert user_of(Path("/proc"), ended.pid) is None


def test_the_processor_time_of_holders_is_that_of_all_their_threads(tmp_path: Path) -> None:
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    for pid, user, system in ((10, 3, 1), (11, 5, 0)):
        (tmp_path / str(pid)).mkdir()
        fields = ["S", *["0"] * 10, str(user * ticks_a_second), str(system * ticks_a_second), *["0"] * 6]
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) {' '.join(fields)} 777 0")
    first, second = (DeviceUser(pid=pid, start_time=777, command="a) b") for pid in (10, 11))
    assert cpu_time_s(tmp_path, (first, second)) == 9
    assert cpu_time_s(tmp_path, ()) == 0


def test_the_processor_time_of_another_process_of_that_id_is_unknown() -> None:
    myself = user_of(Path("/proc"), os.getpid())
    assert myself is not None
    assert cpu_time_s(Path("/proc"), (myself,)) is not None
    earlier = DeviceUser(pid=myself.pid, start_time=myself.start_time - 1, command="")
    assert cpu_time_s(Path("/proc"), (myself, earlier)) is None
    assert cpu_time_s(Path("/nowhere"), (myself,)) is None
