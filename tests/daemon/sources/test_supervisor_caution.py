"""A record that no worker survives is met twice, skipped and reported; all others are reported once."""

import os
import re
import signal
from pathlib import Path

import pytest

from nodeagent.core.model import Signal, SourceBack
from nodeagent.daemon.workers.worker import Caution, WorkerSpec
from nodeagent.store.records import Cursor
from tests.daemon.staged import BOOT, HANG_S, Staged, put, staged, worker_spec

DEADLY = ["WEDGE", "CRASH", "BUG"]


def ring(control: Path, *records: str, **given: object) -> WorkerSpec:
    """The records have the numbers 10, 11, …"""
    offer(control, *records)
    return worker_spec("tests.daemon.fake_ring", config={"control": str(control)}, **given)


def offer(control: Path, *records: str) -> None:
    put(control / "ring", "".join(f"{number} {text}\n" for number, text in enumerate(records, start=10)))


def met(control: Path, text: str) -> int:
    return (control / "met").read_text().split().count(text)


def reported(stage: Staged) -> list[str]:
    return [given.code for given in stage.inputs if isinstance(given, Signal) and given.source == "fake"]


def gaps(stage: Staged) -> list[Signal]:
    return [given for given in stage.inputs if isinstance(given, Signal) and given.code == "log_gap.skipped"]


@pytest.mark.parametrize("deadly", DEADLY)
async def test_record_that_no_worker_survives_is_met_twice_and_told_as_a_gap(
    control: Path, deadly: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(ring(control, "ONE", "TWO", deadly, "THREE", call_deadline_s=HANG_S)) as stage:
        await stage.back()

        assert reported(stage) == ["ONE", "TWO", "THREE"]
        assert met(control, deadly) == 2
        (gap,) = gaps(stage)
        assert (gap.device, gap.count, gap.assertion) == ("node", 1, "once")
        assert gap.evidence == {
            "line": deadly,
            "source": "fake",
            "reason": "two workers ended while they looked at it; what it says is not judged",
        }
        assert stage.health.records_lost == 1
        assert stage.health.restarts == 2
        assert [delivery.cursor for delivery in stage.deliveries if delivery.cursor is not None][
            -1
        ] == Cursor(boot_id=BOOT, seq=13)
    logged = [message for name, _, message in caplog.record_tuples if name.startswith("nodeagent.daemon")]
    ended, skipped = [line for line in logged if "record 12" in line]
    what = r"fake: worker \d+ ended while it read record 12: the next worker skips that record"
    assert re.fullmatch(what, ended)
    assert (
        skipped
        == "fake: record 12 is skipped: two workers ended while they looked at it; what it says is not judged"
    )


async def test_each_of_many_deadly_records_costs_one_worker_and_the_first_two(control: Path) -> None:
    deadly = ("CRASH", "BUG", "CRASH", "CRASH", "BUG")
    records = [text for n, each in enumerate(deadly) for text in (f"FINE_{n}", each)]
    async with staged(ring(control, *records, "LAST")) as stage:
        await stage.back()
        assert reported(stage) == ["FINE_0", "FINE_1", "FINE_2", "FINE_3", "FINE_4", "LAST"]
        assert [gap.evidence["line"] for gap in gaps(stage)] == list(deadly)
        assert stage.health.restarts == len(deadly) + 1
        assert stage.health.records_lost == len(deadly)


async def test_caution_ends_with_the_trouble(control: Path) -> None:
    """A second trouble begins anew: two workers for it, and none of its neighbours is lost."""
    async with staged(ring(control, "CRASH")) as stage:
        await stage.back()
        first = stage.inputs.index(SourceBack(source="fake"))
        offer(control, "CRASH", "NEXT", "CRASH", "LAST")
        await stage.back(after=first + 1)
        await stage.signal("LAST", "node", "once")
        assert reported(stage) == ["NEXT", "LAST"]
        assert [gap.evidence["line"] for gap in gaps(stage)] == ["CRASH", "CRASH"]
        assert met(control, "CRASH") == 4


async def test_worker_that_dies_over_no_record_costs_none(control: Path) -> None:
    async with staged(ring(control, "ONE", "TWO")) as stage:
        await stage.back()
        for _ in range(3):
            before = stage.inputs.copy()
            assert stage.health.pid is not None
            os.kill(stage.health.pid, signal.SIGKILL)
            await stage.back(after=len(before))
        offer(control, "ONE", "TWO", "THREE")
        await stage.signal("THREE", "node", "once")
        assert reported(stage) == ["ONE", "TWO", "THREE"]
        assert gaps(stage) == []
        assert stage.health.records_lost == 0


async def test_worker_that_is_let_go_over_a_record_ends_no_worker_unasked(
    control: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(ring(control, "ONE", "WEDGE")) as stage:
        await stage.until(lambda: (control / "met").exists() and met(control, "WEDGE"))
        assert await stage.supervisor.let_go("quiesced")
        offer(control, "ONE", "FINE")
        stage.supervisor.take_up()
        await stage.back()
        assert reported(stage) == ["ONE", "FINE"]
        assert gaps(stage) == []
    assert not [text for text in caplog.messages if "ended over" in text]


def test_record_that_is_accounted_for_is_skipped_no_more() -> None:
    caution = Caution()
    caution.ended_unasked(None)
    caution.ended_unasked(7)
    caution.ended_unasked(9)
    caution.accounted_for(7)
    assert (caution.careful, caution.skip) == (True, (9,))
    caution.passed()
    assert (caution.careful, caution.skip) == (False, ())
