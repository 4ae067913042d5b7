"""The kernel-log driver's account of what it read: history, cursor, losses, and who wrote the line."""

import os
import time
from pathlib import Path

import pytest

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.kmsg import driver as driver_module
from nodeagent.drivers.kmsg.reader import KernelLog
from nodeagent.wire import Batch, CaughtUp, Cursor, Lost, Pattern
from tests.drivers.kmsg.following import BOOT, FAULT, followed
from tests.harness.kernel_log import KernelLogDouble, VanishingKernelLog


def test_history_is_backdated_and_told_before_caught_up(kernel_log: KernelLogDouble) -> None:
    kernel_log.write(40, "fault OLD", boottime_us=1_500)
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        kernel_log.write(41, "fault NEW", boottime_us=2_500)
        log.reports.until(lambda: len(log.reports.signals) == 2)
        old, new = log.reports.signals
        assert (old.code, old.backdated, old.last_ns) == ("OLD", True, 1_500_000)
        assert (new.code, new.backdated, new.last_ns) == ("NEW", False, 2_500_000)
        assert [type(report) for report in log.reports.all] == [Batch, CaughtUp, Batch]
        assert [batch.cursor for batch in log.reports.batches] == [40, 41]


def test_story_02_cursor_of_this_boot_yields_nothing_twice(kernel_log: KernelLogDouble) -> None:
    for seq in (5, 6, 7):
        kernel_log.write(seq, f"fault F{seq}")
    with followed(kernel_log.path, Cursor(boot_id=BOOT, seq=6)) as log:
        log.reports.caught_up()
        assert log.reports.codes == [("F7", 1)]
        assert log.reports.lost == 0


def test_story_02_cursor_of_another_boot_yields_all_of_this_one(kernel_log: KernelLogDouble) -> None:
    for seq in (0, 1, 2):
        kernel_log.write(seq, f"fault F{seq}")
    with followed(kernel_log.path, Cursor(boot_id="boot before", seq=1)) as log:
        log.reports.caught_up()
        assert log.reports.codes == [("F0", 1), ("F1", 1), ("F2", 1)]
        assert log.reports.lost == 0


@pytest.mark.parametrize(
    ("cursor", "lost"),
    [
        (Cursor(boot_id=BOOT, seq=10), 19),
        (Cursor(boot_id=BOOT, seq=29), 0),
        (Cursor(boot_id="boot before", seq=10), 30),
        (None, 0),
    ],
)
def test_records_overwritten_while_nobody_read_are_counted(
    kernel_log: KernelLogDouble, cursor: Cursor | None, lost: int
) -> None:
    kernel_log.write(30, "quiet")
    with followed(kernel_log.path, cursor) as log:
        log.reports.caught_up()
        assert log.reports.lost == lost
        assert log.reports.cursor == 30


def test_cursor_beyond_the_log_does_not_make_deaf(kernel_log: KernelLogDouble) -> None:
    """As after a restored snapshot of the machine, whose boot id stayed."""
    kernel_log.write(7, "fault BEFORE")
    with followed(kernel_log.path, Cursor(boot_id=BOOT, seq=1000)) as log:
        log.reports.caught_up()
        kernel_log.write(8, "fault AFTER")
        log.reports.until(lambda: ("AFTER", 1) in log.reports.codes)
        assert log.reports.lost == 0


def test_story_03_gap_in_the_numbers_is_an_exact_loss(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        kernel_log.write(100, "quiet")
        log.reports.caught_up()
        kernel_log.write(1101, "fault AFTER")
        log.reports.until(lambda: log.reports.signals)
        reported = next(batch for batch in log.reports.batches if batch.lost)
        assert reported.lost == 1000
        assert log.reports.codes == [("AFTER", 1)]


def test_second_loss_is_told_apart_from_the_first(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        kernel_log.write(1, "quiet")
        log.reports.caught_up()
        for seq in (11, 21, 31):
            kernel_log.write(seq, "quiet")
        log.reports.until(lambda: log.reports.lost == 27)


def test_source_that_goes_and_comes_back_counts_nothing_twice(vanishing_log: VanishingKernelLog) -> None:
    with followed(vanishing_log.path) as log:
        vanishing_log.write(1, "fault ONE")
        log.reports.until(lambda: log.reports.signals)
        vanishing_log.vanish()
        lost = log.reports.until(lambda: next((r for r in log.reports.all if isinstance(r, Lost)), None))
        assert str(vanishing_log.path) in lost.reason
        vanishing_log.ring.append(b"3,2,1,-;fault TWO\n")
        vanishing_log.appear()
        log.reports.caught_up(times=2)
        log.reports.until(lambda: ("TWO", 1) in log.reports.codes)
        assert log.reports.codes == [("ONE", 1), ("TWO", 1)]
        assert log.reports.lost == 0


def test_source_that_is_away_still_answers_its_polls(vanishing_log: VanishingKernelLog) -> None:
    with followed(vanishing_log.path) as log:
        log.reports.caught_up()
        vanishing_log.vanish()
        log.reports.until(lambda: any(isinstance(report, Lost) for report in log.reports.all))
        assert log.ask().readings["records_total"] == 0


def test_storm_is_one_signal_and_a_count(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        kernel_log.write(0, "fault FIRST")
        log.reports.caught_up()
        for seq in range(1, 501):
            kernel_log.write(seq, "fault STORM")
        kernel_log.write(501, "fault OTHER")
        log.reports.until(lambda: ("OTHER", 1) in log.reports.codes)
        storm = [count for code, count in log.reports.codes if code == "STORM"]
        assert sum(storm) == 500
        assert storm[0] == 1
        assert len(storm) <= 20  # one a second at most, however long the machine takes
        assert log.reports.cursor == 501


def test_cursor_never_covers_what_is_not_told(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        for seq in range(300):
            kernel_log.write(seq, "fault STORM")
            covered = log.reports.cursor
            reported = sum(signal.count for signal in log.reports.signals)
            assert covered is None or reported >= covered + 1
        log.reports.until(lambda: log.reports.cursor == 299)
        assert sum(signal.count for signal in log.reports.signals) == 300


def test_unmatched_lines_move_the_cursor_too(
    kernel_log: KernelLogDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "CURSOR_INTERVAL_NS", 10_000_000)
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        kernel_log.write(7, "nothing of note")
        log.reports.until(lambda: log.reports.cursor == 7)
        assert log.reports.signals == []


@pytest.mark.parametrize(
    ("facility", "trust_userspace", "trusted"), [(0, False, True), (1, False, False), (1, True, True)]
)
def test_line_user_space_wrote_is_trusted_only_on_request(
    kernel_log: KernelLogDouble, facility: int, trust_userspace: bool, trusted: bool
) -> None:
    kernel_log.write(1, "fault FORGED", facility=facility)
    with followed(kernel_log.path, trust_userspace=trust_userspace) as log:
        log.reports.caught_up()
        assert [signal.trusted for signal in log.reports.signals] == [trusted]


def test_the_rest_of_another_line_begins_no_message(kernel_log: KernelLogDouble) -> None:
    joined = Pattern(id="J", code="J", regex="^NVRM: ", device="node", continuation=True)
    for seq, text in enumerate(("fault QUOTED", "NVRM: x"), start=1):
        kernel_log.write_raw(f"4,{seq},{seq},c;{text}\n".encode())
    kernel_log.write(3, "fault REAL")
    with followed(kernel_log.path, patterns=(FAULT, joined)) as log:
        log.reports.caught_up()
        assert log.reports.codes == [("J", 1), ("REAL", 1)]


def test_evidence_is_the_line_where_it_stood_and_what_it_named(kernel_log: KernelLogDouble) -> None:
    kernel_log.write_raw(b"3,9,1234,-;fault OOM of ev\\x1bil\n SUBSYSTEM=pci\n")
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        assert log.reports.signals[0].evidence == {
            "line": "fault OOM of ev\\x1bil",
            "kernel_seq": "9",
            "kernel_time_us": "1234",
            "pattern": "FAULT",
            "code": "OOM",
            "name": "ev\\x1bil",
            "SUBSYSTEM": "pci",
        }


def test_evidence_is_bounded(kernel_log: KernelLogDouble) -> None:
    kernel_log.write(1, "fault LONG of " + "x" * 3000)
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        evidence = log.reports.signals[0].evidence
        assert (len(evidence["line"]), len(evidence["name"])) == (1024, 256)


def test_stamp_ahead_of_the_clock_is_now(kernel_log: KernelLogDouble) -> None:
    kernel_log.write(1, "fault EARLY", boottime_us=2**51)
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        assert log.reports.signals[0].last_ns <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def test_malformed_records_are_counted_and_passed_over(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        kernel_log.write_raw(b"not a record\n")
        kernel_log.write(1, "fault GOOD")
        log.reports.until(lambda: log.reports.signals)
        assert log.ask().readings == {"records_total": 1, "malformed_total": 1, "matched_total": 1}


def test_new_patterns_apply_from_the_next_record(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        log.driver.reload([Pattern(id="NEW", code="NEW", regex="alarm", device="node")])
        kernel_log.write(1, "fault OLD")
        kernel_log.write(2, "alarm")
        log.reports.until(lambda: log.reports.signals)
        assert log.reports.codes == [("NEW", 1)]


def test_bad_pattern_leaves_the_old_ones(kernel_log: KernelLogDouble) -> None:
    with followed(kernel_log.path) as log:
        log.reports.caught_up()
        with pytest.raises(ValueError, match="pattern BAD"):
            log.driver.reload([FAULT, Pattern(id="BAD", code="X", regex="(", device="node")])
        kernel_log.write(1, "fault STILL")
        log.reports.until(lambda: ("STILL", 1) in log.reports.codes)


def test_missing_log_says_which_directive_hides_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"No such file.*PrivateDevices=yes hides it") as caught:
        KernelLog(str(tmp_path / "kmsg")).open()
    assert caught.value.absent


def test_log_file_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    (tmp_path / "dmesg").touch()
    with pytest.raises(Unavailable, match=r"neither a character device nor a FIFO.*nodeagent replay"):
        KernelLog(str(tmp_path / "dmesg")).open()


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (1, "CapabilityBoundingSet= and AmbientCapabilities= must hold CAP_SYSLOG and DeviceAllow="),
        (13, "this user may not read it: run as root"),
    ],
)
def test_refusal_says_which_directive_denies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    fifo = tmp_path / "kmsg"
    os.mkfifo(fifo)

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unavailable, match=hint) as caught:
        KernelLog(str(fifo)).open()
    assert caught.value.errno == number
    assert not caught.value.absent
