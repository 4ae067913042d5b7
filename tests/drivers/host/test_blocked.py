"""Processes that are blocked in the kernel: trees such as /proc, and one that really is."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.drivers.host.blocked import LASTS_S, SCAN_S, BlockedProcesses
from nodeagent.drivers.host.check import Hardware
from tests.cgroups import make_folders
from tests.drivers.host.node_tree import NodeTree
from tests.waiting import WAIT_LIMIT_S, wait_until

KERNEL_THREAD = 0x00208040
SLURM = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n"

VFORK = """
import ctypes, os, sys
held = os.open(sys.argv[1], os.O_RDONLY)
libc = ctypes.CDLL(None)
if libc.vfork() == 0:
    libc.sleep(1000)
    libc._exit(0)
"""
"""The parent of ``vfork`` waits, not to be interrupted, until its child is done (vfork(2))."""


class Time:
    now_s = 0.0


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def check(node: NodeTree, clock: Time) -> BlockedProcesses:
    node.gpu()
    return BlockedProcesses(node.procfs, Hardware(node.sysfs), lambda: clock.now_s)


def process(
    node: NodeTree,
    pid: int,
    state: str = "D",
    *,
    device: str = "",
    job: str = "0::/\n",
    ticks: int = 5,
    flags: int = 0x00404040,
    thread: int | None = None,
) -> Path:
    """As proc_pid_stat(5) has it; ``thread`` in place of the process itself."""
    folder = node.procfs / str(pid)
    at = folder / "task" / str(thread or pid)
    at.mkdir(parents=True, exist_ok=True)
    stat = f"{pid} (pt (main) 1) {state} 1 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 9 0 4711 0 0"
    (at / "stat").write_text(stat)
    (at / "wchan").write_text("nv_wait_for_gpu")
    (folder / "cgroup").write_text(job)
    make_folders(node.sysfs / "fs/cgroup", job)
    (folder / "fd").mkdir(exist_ok=True)
    if thread is None:
        (folder / "stat").write_text(stat)
    if device:
        (folder / "fd/17").symlink_to(device)
    return folder


def text_of(check: BlockedProcesses, clock: Time, passed_s: float = 0.0) -> str:
    clock.now_s += passed_s
    active = check.look().active
    assert set(active) <= {("node", "PROCESS_BLOCKED")}
    return next(iter(active.values()), {}).get("processes", "")


@pytest.mark.root
def test_a_process_that_holds_a_gpu_is_told_with_where_it_waits(
    node: NodeTree, check: BlockedProcesses, clock: Time
) -> None:
    process(node, 42, device="/dev/nvidia3", job=SLURM)

    assert text_of(check, clock) == ""
    assert text_of(check, clock, LASTS_S - 1) == ""
    assert text_of(check, clock, 1) == (
        "pt (main) 1 42, 60 s, devices nvidia3, job slurm:77.0, in nv_wait_for_gpu"
    )

    process(node, 42, "S")
    assert text_of(check, clock, 10) == ""


def test_one_that_computes_in_between_is_not_blocked(
    node: NodeTree, check: BlockedProcesses, clock: Time
) -> None:
    for ticks in range(20):
        process(node, 42, ticks=ticks, device="" if ticks else "/dev/davinci0")
        assert text_of(check, clock, 10) == ""


@pytest.mark.parametrize("device", ["", "/dev/nvidiactl", "/dev/null", "/home/a/dev/nvidia"])
def test_one_that_holds_no_accelerator_does_not_count(
    node: NodeTree, check: BlockedProcesses, clock: Time, device: str
) -> None:
    process(node, 42, device=device, job=SLURM)

    assert [text_of(check, clock, LASTS_S) for _ in range(3)] == ["", "", ""]


def test_threads_of_the_kernel_wait_as_they_like(
    node: NodeTree, check: BlockedProcesses, clock: Time
) -> None:
    process(node, 42, device="/dev/nvidia3", flags=KERNEL_THREAD)

    assert [text_of(check, clock, LASTS_S) for _ in range(3)] == ["", "", ""]


def test_of_a_process_whose_first_thread_has_ended_the_others_count(
    node: NodeTree, check: BlockedProcesses, clock: Time
) -> None:
    process(node, 42, "Z", device="/dev/nvidia3")
    process(node, 42, "D", thread=43)

    assert [text_of(check, clock, each) for each in (0, LASTS_S)][1].startswith("pt (main) 1 42, 60 s, ")


def test_another_process_with_the_number_of_one_that_was_blocked_begins_anew(
    node: NodeTree, check: BlockedProcesses, clock: Time
) -> None:
    folder = process(node, 42, device="/dev/nvidia3")
    text_of(check, clock)
    for file in (folder / "stat", folder / "task/42/stat"):
        file.write_text(file.read_text().replace("4711", "4712"))

    assert text_of(check, clock, LASTS_S) == ""


def test_one_that_ends_meanwhile_is_forgotten(node: NodeTree, check: BlockedProcesses, clock: Time) -> None:
    folder = process(node, 42, device="/dev/nvidia3")
    text_of(check, clock)
    folder.rename(node.root / "ended")

    assert text_of(check, clock, LASTS_S) == ""


def test_between_two_scans_only_those_that_were_blocked_are_looked_at(
    node: NodeTree, check: BlockedProcesses, clock: Time
) -> None:
    text_of(check, clock)
    process(node, 42, device="/dev/nvidia3")
    text_of(check, clock, SCAN_S - 1)
    assert text_of(check, clock, 1) == ""
    assert text_of(check, clock, LASTS_S) != ""


def test_a_node_without_accelerators_is_not_looked_through(node: NodeTree, clock: Time) -> None:
    process(node, 42, device="/dev/nvidia3")
    check = BlockedProcesses(node.procfs, Hardware(node.sysfs), lambda: clock.now_s)

    assert check.is_here() is False
    assert [text_of(check, clock, LASTS_S) for _ in range(3)] == ["", "", ""]


@pytest.fixture
def really_blocked(tmp_path: Path) -> Iterator[int]:
    """A process in state D that has a file open which is named as a GPU's."""
    device = tmp_path / "dev/nvidia3"
    device.parent.mkdir()
    device.touch()
    child = subprocess.Popen([sys.executable, "-c", VFORK, device], start_new_session=True)
    try:
        yield child.pid
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(timeout=WAIT_LIMIT_S)


def test_a_process_that_really_is_blocked_is_found(node: NodeTree, clock: Time, really_blocked: int) -> None:
    node.gpu()
    # It may wait for the disk before that, and be found anew once it has gone on.
    children = Path(f"/proc/{really_blocked}/task/{really_blocked}/children")
    wait_until(lambda: children.read_text() != "", "it waits for its child")
    stat = Path(f"/proc/{really_blocked}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "D", "it is blocked")
    check = BlockedProcesses(Path("/proc"), Hardware(node.sysfs), lambda: clock.now_s)

    assert text_of(check, clock) == ""
    found = text_of(check, clock, LASTS_S).split("; ")

    (own,) = [each for each in found if f" {really_blocked}, " in each]
    assert f"{really_blocked}, 60 s, devices nvidia3" in own
