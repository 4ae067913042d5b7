"""What NVIDIA's support asks for is collected after a reset that failed, bounded, and nobody waits for it.

The vendor's interface is the command: ``nvidia-bug-report.sh`` is a double here, with the options of the
script (its usage): what it collects goes to the file that is named, with ".gz" behind it where there is gzip.
"""

import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.emulator.node import EmulatedNode
from nodeagent.reset_unit.attempt import MARGIN_S
from nodeagent.reset_unit.evidence import LOCK, MAX_REPORT_FILE_BYTES
from nodeagent.reset_unit.exchange.files import locked
from nodeagent.reset_unit.exchange.record import ResetRecord
from nodeagent.reset_unit.exchange.requests import name_of
from tests.reset_unit.conftest import ACTION, ResetUnit, fake_tool, make_reset_unit
from tests.waiting import wait_until

NAME = name_of(ACTION, 1)

SMI = """
if sys.argv[1] != "--gpu-reset":
    sys.exit(0)
print({said!r})
sys.exit({status})
"""
HANGS = """
import time
time.sleep(40 if sys.argv[1] == "--gpu-reset" else 0)
"""
CHROOT = """
import os
os.execvp(sys.argv[2], sys.argv[2:])
"""
SCRIPT = """#!/bin/sh
echo "$*" >>{called}
[ "$1" = --safe-mode ] && [ "$2" = --output-file ] || exit 1
echo "Start of NVIDIA bug report log file." | gzip >>"$3.gz"
touch acpidump-temp$$.log
{then}
echo "End of NVIDIA bug report log file." | gzip >>"$3.gz"
"""
FAILS = SMI.format(said="GPU 00000000:1B:00.0: Unknown Error", status=255)
REFUSES = SMI.format(said="GPU 00000000:1B:00.0 is in use by another client", status=255)


@pytest.fixture
def reset_unit(tmp_path: Path) -> Iterator[ResetUnit]:
    """For one GPU, whose reset fails."""
    with EmulatedNode.create(tmp_path / "node", "1xH100") as node:
        reset_unit = make_reset_unit(tmp_path, node, "nvidia")
        reset_unit.procfs = tmp_path / "proc"
        (reset_unit.procfs / "driver/nvidia").mkdir(parents=True)
        reset_unit.configure()
        reset_unit.env = fake_tool(tmp_path / "bin", "nvidia-smi", FAILS, {})
        script(reset_unit)
        yield reset_unit


def script(reset_unit: ResetUnit, then: str = "") -> None:
    """The vendor's, which does this in its midst."""
    tool = reset_unit.base / "bin/nvidia-bug-report.sh"
    tool.write_text(SCRIPT.format(called=reset_unit.base / "called", then=then))
    tool.chmod(0o755)


def report(reset_unit: ResetUnit) -> Path:
    return reset_unit.record / "evidence" / NAME / "bug-report"


def outcome(reset_unit: ResetUnit) -> str:
    return (report(reset_unit) / "outcome.txt").read_text()


def steps(reset_unit: ResetUnit) -> list[str]:
    result = reset_unit.do()
    assert result.state == "failed", result
    return [step.what for step in result.steps if "bug report" in step.what]


def test_it_is_made_in_safe_mode_after_a_reset_that_failed_and_told_with_it(reset_unit: ResetUnit) -> None:
    assert steps(reset_unit) == [f"bug report: made afterwards, in {report(reset_unit)}"]
    assert (
        reset_unit.base / "called"
    ).read_text() == f"--safe-mode --output-file {report(reset_unit)}/report.log\n"
    assert sorted(path.name for path in report(reset_unit).iterdir()) == ["outcome.txt", "report.log.gz"]
    assert outcome(reset_unit).startswith("complete, after ")


def test_the_result_is_told_and_other_resets_may_begin_before_it_is_made(reset_unit: ResetUnit) -> None:
    os.mkfifo(reset_unit.base / "go-on")
    script(reset_unit, then=f"read _ <{reset_unit.base}/go-on")
    name = reset_unit.ask()
    process = reset_unit.start(name)
    wait_until((reset_unit.base / "called").exists)
    result = reset_unit.folder.result(name)
    is_locked = reset_unit.folder.is_locked(name)
    with ResetRecord(reset_unit.record).group_locked("nvidia gpu0", 0):
        is_alive = process.poll() is None
    (reset_unit.base / "go-on").write_text("\n")

    assert (result is not None and result.state, is_locked, is_alive) == ("failed", False, True)
    assert process.wait(60) == 0
    assert outcome(reset_unit).startswith("complete, after ")


def test_one_that_does_not_end_is_killed_with_its_children_and_what_it_wrote_is_kept(
    reset_unit: ResetUnit,
) -> None:
    reset_unit.configure('bug_report_timeout = "1s"')
    script(reset_unit, then=f"sleep 600 & echo $! >{reset_unit.base}/child; wait")
    steps(reset_unit)
    killed = f"incomplete: {reset_unit.base}/bin/nvidia-bug-report.sh: killed after 1 s, after "
    assert outcome(reset_unit).startswith(killed)
    written = gzip.decompress((report(reset_unit) / "report.log.gz").read_bytes())
    assert written == b"Start of NVIDIA bug report log file.\n"
    child = Path("/proc", (reset_unit.base / "child").read_text().strip(), "stat")
    wait_until(lambda: not child.exists() or ") Z " in child.read_text())


def test_no_file_of_it_becomes_larger_than_the_bound(reset_unit: ResetUnit) -> None:
    script(reset_unit, then=f'head -c {MAX_REPORT_FILE_BYTES + 1} /dev/zero >"$3.gz"')
    steps(reset_unit)
    assert (report(reset_unit) / "report.log.gz").stat().st_size == MAX_REPORT_FILE_BYTES


def test_the_last_five_are_kept(reset_unit: ResetUnit) -> None:
    for number in range(6):
        old = reset_unit.record / "evidence" / f"old{number}" / "bug-report"
        old.mkdir(parents=True)
        os.utime(old, (number, number))
    steps(reset_unit)
    kept = {path.parent.name for path in reset_unit.record.glob("evidence/*/bug-report")}
    assert kept == {"old2", "old3", "old4", "old5", NAME}


def test_while_one_is_made_no_other_begins(reset_unit: ResetUnit) -> None:
    reset_unit.record.mkdir(mode=0o700)
    with locked(reset_unit.record, LOCK):
        steps(reset_unit)
    assert not (reset_unit.base / "called").exists()
    assert "bug report: none: one of another reset is being made" in (reset_unit.base / "output").read_text()


def test_after_a_reset_that_was_refused_none_is_made(reset_unit: ResetUnit) -> None:
    fake_tool(reset_unit.base / "bin", "nvidia-smi", REFUSES, {})
    assert reset_unit.do().state == "refused"
    assert not (reset_unit.base / "called").exists()


def test_none_is_made_where_the_configuration_says_so(reset_unit: ResetUnit) -> None:
    reset_unit.configure('bug_report_timeout = "0s"')
    assert steps(reset_unit) == ["no bug report: reset.bug_report_timeout is 0s"]
    assert not (reset_unit.base / "called").exists()


def test_where_the_tool_is_missing_that_is_told(reset_unit: ResetUnit) -> None:
    (reset_unit.base / "bin/nvidia-bug-report.sh").unlink()
    assert steps(reset_unit) == ["no bug report: nvidia-bug-report.sh is not installed"]


def test_while_a_call_of_the_vendors_hangs_none_is_made(reset_unit: ResetUnit) -> None:
    fake_tool(reset_unit.base / "bin", "nvidia-smi", HANGS, {})
    # All that comes before the call, on a loaded machine too, is done in the first seconds beyond the margin.
    enough_ns = round((MARGIN_S + 12) * 10**9)
    result = reset_unit.do(deadline_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME) + enough_ns)
    assert result.state == "timed_out"
    assert "no bug report: a call of the vendor's hangs" in [step.what for step in result.steps]
    assert not (reset_unit.base / "called").exists()


def test_that_of_a_driver_in_a_root_of_its_own_is_run_outside_of_that(reset_unit: ResetUnit) -> None:
    inside = reset_unit.base / "driver/usr/bin/nvidia-bug-report.sh"
    inside.parent.mkdir(parents=True)
    (reset_unit.base / "bin/nvidia-bug-report.sh").rename(inside)
    config = reset_unit.config.read_text()
    reset_unit.config.write_text(
        config.replace("[drivers.nvidia]", f'[drivers.nvidia]\ndriver_root = "{reset_unit.base}/driver"')
    )
    fake_tool(reset_unit.base / "bin", "chroot", CHROOT, {})
    assert steps(reset_unit) == [f"bug report: made afterwards, in {report(reset_unit)}"]
    assert outcome(reset_unit).startswith("complete, after ")
