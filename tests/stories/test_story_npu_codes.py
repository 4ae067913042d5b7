"""Every code of the shipped table of NPUs, from the library to a subscriber and back to none."""

from collections.abc import Sequence
from pathlib import Path

from nodeagent.client import EventKind, Handling, Level, Verdict
from nodeagent.core.catalog.catalog import Row
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import load_catalog
from tests.harness.configuration import ROOT
from tests.harness.subscriber import without_gap
from tests.stories.npus import CHIPS, TABLE, Npus, eight_npus

MADE_BY_US = frozenset({"110000002", "110001024", "200001002"})
"""Wider than any code that the library could report: they stand for what is found out in other ways."""

STANCE = {
    Level.NOT_HANDLE: (Verdict.ALLOW, Handling.NONE),
    Level.SUB_HEALTH: (Verdict.ALLOW, Handling.JOB_STRATEGY),
    Level.RESTART_REQUEST: (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST),
    Level.RESTART_BUSINESS: (Verdict.ISOLATE, Handling.RESCHEDULE),
    Level.FREE_RESTART_NPU: (Verdict.ISOLATE, Handling.RESCHEDULE),
    Level.RESTART_NPU: (Verdict.ISOLATE, Handling.RESCHEDULE),
    Level.PRE_SEPARATE_NPU: (Verdict.NO_NEW_JOBS, Handling.NONE),
    Level.SEPARATE_NPU: (Verdict.ISOLATE, Handling.RESCHEDULE),
}
USER_INDUCED = (Verdict.ALLOW, Handling.RESTART_JOB)


async def test_every_code_is_told_with_its_level_verdict_and_handling_and_clears(tmp_path: Path) -> None:
    rows = rows_of_the_library()
    assert len(rows) == 802 - len(MADE_BY_US)
    async with eight_npus(tmp_path) as npus:
        await npus.start()
        await npus.listening()
        for first in range(0, len(rows), len(CHIPS)):
            await come_and_go(npus, rows[first : first + len(CHIPS)])
        raised = {event.code: event for event in npus.events if event.kind is EventKind.RAISED}
        for row in rows:
            event = raised[row.code]
            stood = (event.condition_level, event.verdict, event.handling)
            assert stood == (row.level, *stance(row)), row.code
        assert without_gap(npus.events)


def rows_of_the_library() -> Sequence[Row]:
    catalog = load_catalog([ROOT / "fault_codes"], Settings()).catalog
    of_npus = [row for row in catalog.rows.values() if Path(row.file.partition(":")[0]).name == TABLE]
    return [row for row in of_npus if row.code not in MADE_BY_US]


def stance(row: Row) -> tuple[Verdict, Handling]:
    return USER_INDUCED if row.user_induced else STANCE[row.level]


async def come_and_go(npus: Npus, rows: Sequence[Row]) -> None:
    """One fault on each chip, and nothing else on it."""
    faults = list(zip(CHIPS, rows, strict=False))
    for chip, row in faults:
        npus.node.raise_code(chip, int(row.code, 16))
    for chip, row in faults:
        await npus.raised(chip, row.code)
        npus.node.clear_code(chip, int(row.code, 16))
    for chip, row in faults:
        await npus.cleared(chip, row.code)
