"""What is measured of the processes of a run: real ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.job.sample import ProcessSample
from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import procfs
from nodeagent.job.shell.tree import Tree, send
from nodeagent.job.watching.samples import Holders, Sampler
from tests.job.shell.supervised import below, lives
from tests.waiting import WAIT_LIMIT_S, wait_until

WORKS = """\
import os, sys, time
with open("/dev/zero", "rb", buffering=0) as data, open("/dev/null", "wb", buffering=0) as sink:
    for _ in range(50):
        sink.write(data.read(100_000))
while time.process_time() < 0.1:
    pass
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def tree() -> Tree:
    """Of this process, as if it were the supervisor."""
    return Tree()


@pytest.fixture
def launcher(tree: Tree) -> Iterator["subprocess.Popen[bytes]"]:
    """A shell above a rank that has worked, and one process without a rank."""
    script = f"sleep 600 & RANK=3 {sys.executable} -c '{WORKS}'; wait"
    begun = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert begun.stdout is not None
    begun.stdout.readline()
    wait_until(lambda: all(is_asleep(pid) for pid in below(begun.pid)), "a rank that has worked")
    yield begun
    for pid in (begun.pid, *below(begun.pid)):
        os.kill(pid, signal.SIGKILL)
    begun.communicate(timeout=WAIT_LIMIT_S)


def is_asleep(pid: int) -> bool:
    found = procfs.stat(pid)
    return found is not None and found.state == "S"


def process(pid: int) -> ProcessId:
    found = procfs.stat(pid)
    assert found is not None
    return found.process


def measured(
    tree: Tree, launcher: "subprocess.Popen[bytes]", holders: Holders | None = None
) -> tuple[ProcessSample, ProcessSample, ProcessSample]:
    """(launcher, rank, sleeper)."""
    found = Sampler(tree).measure(process(launcher.pid), holders)
    [top] = [each for each in found if each.pid == launcher.pid]
    [rank] = [each for each in found if each.has_rank]
    [sleeper] = [each for each in found if each not in (top, rank)]
    return top, rank, sleeper


def test_rank_and_launcher_are_told_apart(tree: Tree, launcher: "subprocess.Popen[bytes]") -> None:
    top, rank, sleeper = measured(tree, launcher)

    assert [(each.ppid, each.launcher, each.holds) for each in (top, rank, sleeper)] == [
        (os.getpid(), True, None),
        (launcher.pid, False, None),
        (launcher.pid, False, None),
    ]


def test_counters_are_those_since_the_process_began(tree: Tree, launcher: "subprocess.Popen[bytes]") -> None:
    _, rank, sleeper = measured(tree, launcher)

    assert rank.rchar is not None
    assert rank.rchar >= 5_000_000
    assert rank.wchar is not None
    assert 5_000_000 <= rank.wchar < 6_000_000
    assert rank.syscw is not None
    assert 50 <= rank.syscw < 100
    assert rank.cpu_s is not None
    assert rank.cpu_s > 0.05
    assert sleeper.wchar == 0
    assert (rank.state, sleeper.state) == ("S", "S")


def test_who_holds_a_chip_is_the_daemons_word(tree: Tree, launcher: "subprocess.Popen[bytes]") -> None:
    _, rank, _ = measured(tree, launcher)

    top, rank, sleeper = measured(tree, launcher, {rank.pid: ("npu0",)})

    assert [(each.holds, each.launcher) for each in (top, rank, sleeper)] == [
        (False, True),
        (True, False),
        (False, False),
    ]


def test_command_that_holds_a_chip_itself_is_no_launcher(
    tree: Tree, launcher: "subprocess.Popen[bytes]"
) -> None:
    top, _, _ = measured(tree, launcher, {launcher.pid: ("npu0",)})

    assert (top.holds, top.launcher) == (True, False)


def test_stopped_process_shows(tree: Tree, launcher: "subprocess.Popen[bytes]") -> None:
    _, rank, _ = measured(tree, launcher)
    os.kill(rank.pid, signal.SIGSTOP)

    assert wait_until(lambda: measured(tree, launcher)[1].state == "T", "the rank is stopped")


def test_process_that_came_later_is_seen(tree: Tree, launcher: "subprocess.Popen[bytes]") -> None:
    before = {each.pid for each in tree.glance()}
    later = subprocess.Popen(["sleep", "600"])

    assert {each.pid for each in tree.glance()} - before == {later.pid}
    later.kill()
    later.wait(WAIT_LIMIT_S)


def test_signal_goes_to_the_process_that_was_seen_and_to_no_other(tree: Tree) -> None:
    """As if its number belonged to another process by now."""
    sleeper = subprocess.Popen(["sleep", "600"])
    seen = process(sleeper.pid)

    send(replace(seen, start_time=seen.start_time + 1), signal.SIGKILL)
    assert lives(sleeper.pid)
    send(seen, signal.SIGKILL)

    assert sleeper.wait(WAIT_LIMIT_S) == -signal.SIGKILL


def test_command_with_brackets_and_blanks_in_its_name_is_read(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    sleeper = subprocess.Popen([program, "600"])
    wait_until(lambda: procfs.read(sleeper.pid, "comm") == b"a) S 1 (b\n", "it has done its exec")

    found = procfs.stat(sleeper.pid)

    assert found is not None
    assert (found.ppid, found.threads) == (os.getpid(), 1)
    sleeper.kill()
    sleeper.wait(WAIT_LIMIT_S)
