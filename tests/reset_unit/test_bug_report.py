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
from tests.reset_unit.conftest import ACTION, Desk, fake_tool, furnished
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
def desk(tmp_path: Path) -> Iterator[Desk]:
    """For one GPU, whose reset fails."""
    with EmulatedNode.create(tmp_path / "node", "1xH100") as node:
        desk = furnished(tmp_path, node, "nvidia")
        desk.procfs = tmp_path / "proc"
        (desk.procfs / "driver/nvidia").mkdir(parents=True)
        desk.configure()
        desk.env = fake_tool(tmp_path / "bin", "nvidia-smi", FAILS, {})
        script(desk)
        yield desk


def script(desk: Desk, then: str = "") -> None:
    """The vendor's, which does this in its midst."""
    tool = desk.base / "bin/nvidia-bug-report.sh"
    tool.write_text(SCRIPT.format(called=desk.base / "called", then=then))
    tool.chmod(0o755)


def report(desk: Desk) -> Path:
    return desk.record / "evidence" / NAME / "bug-report"


def outcome(desk: Desk) -> str:
    return (report(desk) / "outcome.txt").read_text()


def steps(desk: Desk) -> list[str]:
    result = desk.do()
    assert result.state == "failed", result
    return [step.what for step in result.steps if "bug report" in step.what]


def test_it_is_made_in_safe_mode_after_a_reset_that_failed_and_told_with_it(desk: Desk) -> None:
    assert steps(desk) == [f"bug report: made afterwards, in {report(desk)}"]
    assert (desk.base / "called").read_text() == f"--safe-mode --output-file {report(desk)}/report.log\n"
    assert sorted(path.name for path in report(desk).iterdir()) == ["outcome.txt", "report.log.gz"]
    assert outcome(desk).startswith("complete, after ")


def test_the_result_is_told_and_other_resets_may_begin_before_it_is_made(desk: Desk) -> None:
    os.mkfifo(desk.base / "go-on")
    script(desk, then=f"read _ <{desk.base}/go-on")
    name = desk.ask()
    process = desk.start(name)
    wait_until((desk.base / "called").exists)
    result = desk.folder.result(name)
    is_locked = desk.folder.is_locked(name)
    with ResetRecord(desk.record).group_locked("nvidia gpu0", 0):
        is_alive = process.poll() is None
    (desk.base / "go-on").write_text("\n")

    assert (result is not None and result.state, is_locked, is_alive) == ("failed", False, True)
    assert process.wait(60) == 0
    assert outcome(desk).startswith("complete, after ")


def test_one_that_does_not_end_is_killed_with_its_children_and_what_it_wrote_is_kept(desk: Desk) -> None:
    desk.configure('bug_report_timeout = "1s"')
    script(desk, then=f"sleep 600 & echo $! >{desk.base}/child; wait")
    steps(desk)
    killed = f"incomplete: {desk.base}/bin/nvidia-bug-report.sh: killed after 1 s, after "
    assert outcome(desk).startswith(killed)
    written = gzip.decompress((report(desk) / "report.log.gz").read_bytes())
    assert written == b"Start of NVIDIA bug report log file.\n"
    child = Path("/proc", (desk.base / "child").read_text().strip(), "stat")
    wait_until(lambda: not child.exists() or ") Z " in child.read_text())


def test_no_file_of_it_becomes_larger_than_the_bound(desk: Desk) -> None:
    script(desk, then=f'head -c {MAX_REPORT_FILE_BYTES + 1} /dev/zero >"$3.gz"')
    steps(desk)
    assert (report(desk) / "report.log.gz").stat().st_size == MAX_REPORT_FILE_BYTES


def test_the_last_five_are_kept(desk: Desk) -> None:
    for number in range(6):
        old = desk.record / "evidence" / f"old{number}" / "bug-report"
        old.mkdir(parents=True)
        os.utime(old, (number, number))
    steps(desk)
    kept = {path.parent.name for path in desk.record.glob("evidence/*/bug-report")}
    assert kept == {"old2", "old3", "old4", "old5", NAME}


def test_while_one_is_made_no_other_begins(desk: Desk) -> None:
    desk.record.mkdir(mode=0o700)
    with locked(desk.record, LOCK):
        steps(desk)
    assert not (desk.base / "called").exists()
    assert "bug report: none: one of another reset is being made" in (desk.base / "output").read_text()


def test_after_a_reset_that_was_refused_none_is_made(desk: Desk) -> None:
    fake_tool(desk.base / "bin", "nvidia-smi", REFUSES, {})
    assert desk.do().state == "refused"
    assert not (desk.base / "called").exists()


def test_none_is_made_where_the_configuration_says_so(desk: Desk) -> None:
    desk.configure('bug_report_timeout = "0s"')
    assert steps(desk) == ["no bug report: reset.bug_report_timeout is 0s"]
    assert not (desk.base / "called").exists()


def test_where_the_tool_is_missing_that_is_told(desk: Desk) -> None:
    (desk.base / "bin/nvidia-bug-report.sh").unlink()
    assert steps(desk) == ["no bug report: nvidia-bug-report.sh is not installed"]


def test_while_a_call_of_the_vendors_hangs_none_is_made(desk: Desk) -> None:
    fake_tool(desk.base / "bin", "nvidia-smi", HANGS, {})
    # All that comes before the call, on a loaded machine too, is done in the first seconds beyond the margin.
    enough_ns = round((MARGIN_S + 12) * 10**9)
    result = desk.do(deadline_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME) + enough_ns)
    assert result.state == "timed_out"
    assert "no bug report: a call of the vendor's hangs" in [step.what for step in result.steps]
    assert not (desk.base / "called").exists()


def test_that_of_a_driver_in_a_root_of_its_own_is_run_outside_of_that(desk: Desk) -> None:
    inside = desk.base / "driver/usr/bin/nvidia-bug-report.sh"
    inside.parent.mkdir(parents=True)
    (desk.base / "bin/nvidia-bug-report.sh").rename(inside)
    config = desk.config.read_text()
    desk.config.write_text(
        config.replace("[drivers.nvidia]", f'[drivers.nvidia]\ndriver_root = "{desk.base}/driver"')
    )
    fake_tool(desk.base / "bin", "chroot", CHROOT, {})
    assert steps(desk) == [f"bug report: made afterwards, in {report(desk)}"]
    assert outcome(desk).startswith("complete, after ")
