"""Retention: what is too old or too much goes, oldest first, and never what a replay needs."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import CatalogChanged, EventKind, Input, RunReported, RunReportKind
from nodeagent.store.disk import retention
from nodeagent.store.disk.retention import RetentionPolicy
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from tests.store.samples import MACHINE, PATIENT, WALL_NS, condition, event, signal, transaction
from tests.waiting import until

DAY_NS = 24 * 3600 * 1_000_000_000
KEEP = RetentionPolicy(retention_ns=30 * DAY_NS)


@asynccontextmanager
async def opened(
    directory: Path, days: float = 0, keep: RetentionPolicy = KEEP, wall_days: float | None = None
) -> AsyncIterator[Ledger]:
    """A ledger so many days after ``WALL_NS``, which the wall clock may see otherwise."""
    shown_ns = on_day(days if wall_days is None else wall_days)
    ledger = Ledger(directory, MACHINE, limits=PATIENT, keep=keep, wall_ns=lambda: shown_ns)
    await ledger.open()
    await ledger.commit(Transaction(engine_now_ns=on_day(days)))
    yield ledger
    await ledger.close()


def on_day(day: float) -> int:
    return WALL_NS + int(day * DAY_NS)


def of_day(day: float, number: int, *, inputs: int = 1, events: int = 1) -> Transaction:
    """As ``transaction``, taken on that day by the rule clock, which the wall clock agrees with."""
    at_ns = on_day(day)
    plain = transaction(number, inputs=inputs, events=events)
    return replace(
        plain,
        inputs=tuple(replace(one, rule_ns=at_ns, wall_ns=at_ns) for one in plain.inputs),
        events=tuple((at_ns, replace(one, at_ns=at_ns)) for _, one in plain.events),
        engine_now_ns=at_ns,
    )


async def test_events_and_audits_older_than_the_retention_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(of_day(0, 1, events=1200))
        await ledger.audit(on_day(0), "uid 0", "IsolateDevice", "npu0", "OK")
        await ledger.commit(of_day(2, 1201, events=3))
        await ledger.audit(on_day(2), "uid 0", "ReleaseDevice", "npu0", "OK")
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        assert (ledger.oldest_seq, ledger.last_seq) == (1201, 1203)
        assert [one.seq for one in await ledger.read_events(0)] == [1201, 1202, 1203]
        assert [row[3] for row in await ledger.read_audit()] == ["ReleaseDevice"]
    async with opened(tmp_path, days=31) as again:
        assert again.oldest_seq == 1201


async def test_a_boot_in_2036_makes_nothing_old(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(of_day(0, 1, events=3))
        await ledger.audit(on_day(0), "uid 0", "IsolateDevice", "npu0", "OK")
        await ledger.compact([condition(1)], engine_now_ns=on_day(0))
    async with opened(tmp_path, days=10, wall_days=3650) as ledger:
        await ledger.trim()
        assert [one.seq for one in await ledger.read_events(0)] == [1, 2, 3]
        assert [row[3] for row in await ledger.read_audit()] == ["IsolateDevice"]


async def test_what_was_told_while_the_clock_stood_in_2036_goes_when_it_is_old(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        events = of_day(0, 1, events=2).events
        await ledger.commit(
            Transaction(events=tuple((on_day(3650), one) for _, one in events), engine_now_ns=on_day(0))
        )
        await ledger.commit(of_day(20, 3))
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        assert [one.seq for one in await ledger.read_events(0)] == [3]


async def test_when_all_events_are_gone_the_numbers_go_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(of_day(0, 1, events=5))
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        assert (ledger.oldest_seq, ledger.last_seq) == (6, 5)
        assert (await ledger.commit(of_day(31, 6))).last_seq == 6


async def test_inputs_since_the_base_stay_whatever_their_age(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(of_day(0, 1, inputs=3, events=0))
        await ledger.compact([condition(1)], engine_now_ns=on_day(0))
        await ledger.commit(of_day(0, 4, inputs=2, events=0))
    async with opened(tmp_path, days=400) as ledger:
        await ledger.trim()
    again = Ledger(tmp_path, MACHINE, limits=PATIENT)
    recovery = await again.open()
    assert recovery.carried == (condition(1),)
    assert [one.input for one in recovery.inputs] == [signal(4), signal(5)]
    await again.close()


async def test_a_store_beyond_its_size_loses_its_oldest_events_only(tmp_path: Path) -> None:
    small = RetentionPolicy(retention_ns=30 * DAY_NS, max_size=1024 * 1024)
    async with opened(tmp_path, keep=small) as ledger:
        for first in range(1, 4001, 100):
            await ledger.commit(of_day(0, first, inputs=0, events=100))
        await ledger.trim()
        assert 1 < ledger.oldest_seq < 4000
        kept = [one.seq for one in await ledger.read_events(ledger.oldest_seq - 1, limit=1000)]
        assert kept[0] == ledger.oldest_seq
        page_after_page = kept
        while page := await ledger.read_events(page_after_page[-1]):
            page_after_page += [one.seq for one in page]
        assert page_after_page == list(range(ledger.oldest_seq, 4001))


@pytest.mark.parametrize("compacted", [False, True])
async def test_a_catalog_stays_while_a_retained_input_was_judged_under_it(
    tmp_path: Path, compacted: bool
) -> None:
    async with opened(tmp_path) as ledger:
        for number, digest in enumerate(["aa", "bb", "cc"], 1):
            await ledger.put_catalog(digest, digest.encode(), "reload")
            at_ns = WALL_NS + number
            change = Stamped(rule_ns=at_ns, wall_ns=WALL_NS, input=CatalogChanged(digest=digest))
            await ledger.commit(Transaction(inputs=(change,), engine_now_ns=at_ns))
        if compacted:
            await ledger.compact([], engine_now_ns=WALL_NS + 9)
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        found = [await ledger.get_catalog(digest) for digest in ("aa", "bb", "cc")]
        assert found == ([None, None, b"cc"] if compacted else [b"aa", b"bb", b"cc"])
        assert await ledger.last_good_catalog() == ("cc", b"cc")


# ---------------------------------------------------------------------- what makes way for what

SMALL = RetentionPolicy(retention_ns=30 * DAY_NS, max_size=1024 * 1024, upkeep_s=3600)
LONG_TEXT = "x" * 4000


def of_jobs(number: int, *, events: int) -> Transaction:
    """What a supervisor says, with its events."""
    said: tuple[Input, ...] = tuple(
        RunReported(job="slurm:7.0", number=each, run=1, what=RunReportKind.SUSPECTED, why=LONG_TEXT)
        for each in range(number, number + events)
    )
    of_it = tuple(
        replace(event(each), kind=EventKind.JOB_SUSPECTED, at_ns=on_day(0), why=LONG_TEXT)
        for each in range(number, number + events)
    )
    return Transaction(
        inputs=tuple(Stamped(rule_ns=on_day(0), wall_ns=on_day(0), input=each) for each in said),
        events=tuple((on_day(0), each) for each in of_it),
        engine_now_ns=on_day(0),
    )


async def all_events(ledger: Ledger) -> list[int]:
    found: list[int] = []
    while page := await ledger.read_events(found[-1] if found else 0):
        found += [one.seq for one in page]
    return found


def file_size(directory: Path) -> int:
    return (directory / "store.db").stat().st_size


async def test_what_is_told_of_jobs_makes_way_before_faults_and_orders(tmp_path: Path) -> None:
    async with opened(tmp_path, keep=SMALL) as ledger:
        await ledger.audit(on_day(0), "uid 0", "IsolateDevice", "npu0", "isolated")
        await ledger.commit(of_day(0, 1, inputs=0, events=100))
        for first in range(101, 701, 100):
            await ledger.commit(of_jobs(first, events=100))
        await ledger.commit(of_day(0, 701, inputs=0, events=100))
        await ledger.compact([condition(1)], engine_now_ns=on_day(0))
        await ledger.trim()
        kept = await all_events(ledger)
        faults = [*range(1, 101), *range(701, 801)]
        assert [seq for seq in kept if seq in faults] == faults
        assert len(kept) < 800
        assert min(seq for seq in kept if seq not in faults) > 101
        assert (ledger.oldest_seq, ledger.last_seq, ledger.damaged_events) == (1, 800, 0)
        assert [row[3] for row in await ledger.read_audit()] == ["IsolateDevice"]


async def test_numbers_that_have_made_way_are_not_missing(tmp_path: Path) -> None:
    """Where the file is damaged later, they are not among what was lost."""
    async with opened(tmp_path, keep=SMALL) as ledger:
        await ledger.commit(of_day(0, 1, inputs=0, events=10))
        await ledger.commit(of_jobs(11, events=300))
        await ledger.compact([condition(1)], engine_now_ns=on_day(0))
        await ledger.trim()
        assert len(await all_events(ledger)) < 310
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute("UPDATE state SET machine_id = 'another'")
        connection.commit()
    async with opened(tmp_path, keep=SMALL) as again:
        (found,) = again.damages
        assert (found.why, found.lost) == (
            "state 1 is not as it was written",
            ("how far the store had come",),
        )


async def test_the_audit_log_has_a_share_in_which_orders_outlast_refusals(tmp_path: Path) -> None:
    async with opened(tmp_path, keep=SMALL) as ledger:
        for number in range(400):
            order = ("uid 0", "IsolateDevice", f"npu{number}", "isolated")
            refused = ("uid 1000", "SuperviseJob", "", f"refused: {LONG_TEXT}"[:1000])
            await ledger.audit(on_day(0), *(order if number % 4 == 0 else refused))
        for first in range(1, 2001, 100):
            await ledger.commit(of_day(0, first, inputs=0, events=100))
        await ledger.trim()
        left = await ledger.read_audit()
        assert [row[4] for row in left if row[3] == "IsolateDevice"] == [f"npu{n}" for n in range(0, 400, 4)]
        assert 0 < sum(row[3] == "SuperviseJob" for row in left) < 100
        size = sum(len(text) for row in left for text in row[2:])
        assert size <= SMALL.max_size // 16


async def test_the_share_of_the_audit_log_does_not_go_by_size(tmp_path: Path) -> None:
    async with opened(tmp_path, keep=SMALL) as ledger:
        for number in range(100):
            await ledger.audit(on_day(0), "uid 0", "IsolateDevice", f"npu{number}", "isolated")
        for first in range(1, 5001, 100):
            await ledger.commit(of_day(0, first, inputs=0, events=100))
        await ledger.trim()
        assert ledger.oldest_seq > 1000
        assert len(await ledger.read_audit()) == 100


async def test_the_upkeep_is_due_as_soon_as_the_size_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAUSE_S", 0.01)
    async with opened(tmp_path, keep=SMALL) as ledger:
        for first in range(1, 8001, 100):
            await ledger.commit(of_day(0, first, inputs=0, events=100))
        await until(lambda: ledger.oldest_seq > 4000, "a trim")
        assert file_size(tmp_path) < 3 * SMALL.max_size


async def test_a_new_base_is_made_where_inputs_are_what_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "LONG_PAUSE_S", 0.0)
    async with opened(tmp_path, keep=SMALL) as ledger:
        ledger.carry = lambda: [condition(1)]
        await ledger.commit(of_day(0, 1, inputs=10, events=0))
        await ledger.trim()
        assert ledger.inputs_since_base == 10
        for first in range(11, 6000, 500):
            await ledger.commit(of_day(0, first, inputs=500, events=0))
        await ledger.trim()
        assert ledger.inputs_since_base < 500
        await ledger.commit(of_day(0, 6011, inputs=2, events=0))
    again = Ledger(tmp_path, MACHINE, limits=PATIENT)
    recovery = await again.open()
    assert recovery.carried == (condition(1),)
    assert [one.input for one in recovery.inputs][-2:] == [signal(6011), signal(6012)]
    await again.close()
