"""The kernel-log driver among lines that may end it: which one is next is said before, and one is skipped."""

from collections.abc import Sequence

import pytest

from nodeagent.core.catalog.catalog import Pattern
from nodeagent.core.model import Signal
from nodeagent.wire import Batch, CaughtUp, Cursor, LookingAt, Skipped
from tests.daemon.staged import command, staged, worker_spec
from tests.drivers.conftest import KernelLogWriter
from tests.drivers.kmsg.following import BOOT, followed
from tests.harness.kernel_log import KernelLogDouble


def outline(reports: Sequence[object]) -> list[tuple[object, ...]]:
    """What was said, in order: a number looked at, or codes with the cursor behind them."""
    reported: list[tuple[object, ...]] = []
    for report in reports:
        match report:
            case LookingAt():
                reported.append(("looking at", report.seq))
            case Batch():
                reported.append((*(signal.code for signal in report.signals), report.cursor))
            case CaughtUp():
                reported.append(("caught up",))
    return reported


def test_careful_it_names_each_record_of_the_history_before_it_looks_at_it(
    kernel_log: KernelLogDouble,
) -> None:
    for seq, line in ((5, "fault BEFORE"), (6, "quiet"), (7, "fault ONE"), (8, "fault TWO")):
        kernel_log.write(seq, line)
    with followed(kernel_log.path, Cursor(boot_id=BOOT, seq=5), careful=True) as log:
        log.reports.caught_up()
        kernel_log.write(9, "fault LIVE")
        log.reports.until(lambda: ("LIVE", 1) in log.reports.codes)
        assert outline(log.reports.all) == [
            ("looking at", 6),
            ("looking at", 7),
            ("ONE", 7),
            ("looking at", 8),
            ("TWO", 8),
            ("caught up",),
            ("LIVE", 9),
        ]


def test_record_to_be_skipped_is_told_at_once_and_covers_what_came_before_it(
    kernel_log: KernelLogDouble,
) -> None:
    """Were it not reported at once, the next worker would have to skip it too."""
    for seq, line in ((5, "fault STORM"), (6, "fault STORM"), (7, "fault \x1bDEADLY"), (9, "fault AFTER")):
        kernel_log.write(seq, line)
    with followed(kernel_log.path, careful=True, skip_records=(7,)) as log:
        log.reports.caught_up()
        skipping = next(batch for batch in log.reports.batches if batch.skipped)
        assert skipping.skipped == (
            Skipped(seq=7, evidence={"line": "fault \\x1bDEADLY", "kernel_seq": "7", "kernel_time_us": "1"}),
        )
        assert (skipping.cursor, skipping.lost) == (7, 0)
        assert log.reports.codes == [("STORM", 1), ("STORM", 1), ("AFTER", 1)]
        assert log.reports.lost == 1  # the one that has no line, number 8
        assert ("looking at", 7) not in outline(log.reports.all)


def test_number_of_another_log_is_not_skipped(kernel_log: KernelLogDouble) -> None:
    kernel_log.write(7, "fault OTHER")
    with followed(kernel_log.path, Cursor(boot_id=BOOT, seq=1000), careful=True, skip_records=(1001,)) as log:
        log.reports.caught_up()
        kernel_log.write(1001, "fault FAR")
        log.reports.until(lambda: ("FAR", 1) in log.reports.codes)


def test_wherever_a_careful_one_ends_its_cursor_covers_what_it_told_and_nothing_else(
    kernel_log: KernelLogDouble,
) -> None:
    """So the next one, which goes on behind the cursor, reports nothing twice and leaves nothing out."""
    for seq in range(60):
        kernel_log.write(seq, f"fault {'OTHER' if seq % 25 == 24 else 'STORM'}" if seq % 3 else "quiet")
    with followed(kernel_log.path, careful=True) as log:
        log.reports.caught_up()
        reported, cursor, looked_at = 0, -1, 0
        for report in log.reports.all:
            if isinstance(report, LookingAt):
                looked_at += 1
                assert reported == sum(1 for seq in range(cursor + 1) if seq % 3)
            elif isinstance(report, Batch) and report.cursor is not None:
                reported += sum(signal.count for signal in report.signals)
                cursor = report.cursor
        assert (reported, cursor, looked_at) == (40, 59, 60)


@pytest.mark.root
async def test_line_that_wedges_the_matcher_is_met_twice_and_the_fault_behind_it_is_told(
    kmsg: KernelLogWriter,
) -> None:
    """The expression takes twice as long for each further letter of a line."""
    wedging = Pattern(
        id="WEDGE", code="W", regex=rf"{kmsg.marker} WEDGE (a+)+(b)?\2$", device="node", file="test:2"
    )
    spec = worker_spec(
        "",
        source="kmsg",
        command=command("-m", "nodeagent.worker", "kmsg", "--module", "tests.drivers.kmsg.impatient"),
        patterns=(wedging, kmsg.pattern),
    )
    async with staged(spec) as stage:
        await stage.back()
        kmsg.write("BEFORE")
        await stage.signal("BEFORE", "node", "once")
        kmsg.write("WEDGE", "a" * 64)
        kmsg.write("BEHIND")
        behind = await stage.signal("BEHIND", "node", "once")

        codes = [each.code for each in stage.inputs if isinstance(each, Signal) and each.source == "kmsg"]
        assert codes == ["BEFORE", "BEHIND"]
        gap = await stage.signal("log_gap.skipped", "node", "once")
        assert gap.evidence["line"] == f"{kmsg.marker} WEDGE {'a' * 64}"
        assert int(gap.evidence["kernel_seq"]) < int(behind.evidence["kernel_seq"])
        assert (stage.health.restarts, stage.health.records_lost) == (2, 1)
        crashed = await stage.signal("worker_crashed.kmsg", "node", "occur")
        assert crashed.evidence["reason"] == (
            "ended by itself: killed by SIGVTALRM: it computed for longer than it allows itself"
        )
