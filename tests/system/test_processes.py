"""Whether a process runs, was killed and is there still, or is gone: trees such as /proc, and a real one."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.system.processes import START, ProcessLife, life_of, stat_of
from tests.cgroups import freeze, freezer, needs
from tests.system.proc_tree import BEGAN, EXITING, KILL, PID, TERM, thread
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("how", "life"),
    [
        ({}, ProcessLife.RUNNING),
        ({"state": "D"}, ProcessLife.RUNNING),
        ({"ShdPnd": TERM, "SigPnd": TERM}, ProcessLife.RUNNING),
        ({"state": "D", "SigPnd": KILL}, ProcessLife.ENDING),
        ({"state": "D", "ShdPnd": KILL}, ProcessLife.ENDING),
        ({"ShdPnd": "ffffffffffffffff"}, ProcessLife.ENDING),
        ({"state": "D", "flags": EXITING}, ProcessLife.ENDING),
        ({"state": "Z", "flags": EXITING, "ShdPnd": KILL}, ProcessLife.GONE),
        ({"state": "X"}, ProcessLife.GONE),
    ],
)
def test_a_process_that_was_killed_and_is_there_still(
    tmp_path: Path, how: Mapping[str, str], life: ProcessLife
) -> None:
    thread(tmp_path, PID, **how)  # type: ignore[arg-type]
    assert life_of(tmp_path, PID, BEGAN) is life


@pytest.mark.parametrize(
    ("how", "life"),
    [
        ({"state": "D", "SigPnd": KILL}, ProcessLife.ENDING),
        ({"state": "D", "flags": EXITING}, ProcessLife.ENDING),
        ({"state": "S"}, ProcessLife.RUNNING),
        ({"state": "X", "flags": EXITING}, ProcessLife.GONE),
    ],
)
def test_of_a_process_whose_first_thread_has_ended_the_others_tell(
    tmp_path: Path, how: Mapping[str, str], life: ProcessLife
) -> None:
    thread(tmp_path, PID, "Z", EXITING, ShdPnd=KILL)
    thread(tmp_path, PID + 1, **how)  # type: ignore[arg-type]
    assert life_of(tmp_path, PID, BEGAN) is life


def test_one_that_has_gone_and_another_one_of_its_number_are_gone(tmp_path: Path) -> None:
    assert life_of(tmp_path, PID, BEGAN) is ProcessLife.GONE
    thread(tmp_path, PID, "D", SigPnd=KILL)
    assert life_of(tmp_path, PID, BEGAN - 1) is ProcessLife.GONE


@pytest.mark.root
@needs("freezer")
def test_a_real_one_that_no_signal_ends() -> None:
    """A process of the freezer takes no signal until it is thawed."""
    procfs = Path("/proc")
    with subprocess.Popen(["sleep", "600"]) as process:
        began = int(stat_of(procfs / str(process.pid))[1][START])
        with freezer(f"nodeagent-test-{os.getpid()}-life") as group:
            assert life_of(procfs, process.pid, began) is ProcessLife.RUNNING
            freeze(group, process.pid)
            assert life_of(procfs, process.pid, began) is ProcessLife.RUNNING
            process.send_signal(signal.SIGKILL)
            assert life_of(procfs, process.pid, began) is ProcessLife.ENDING
        wait_until(lambda: life_of(procfs, process.pid, began) is ProcessLife.GONE)
