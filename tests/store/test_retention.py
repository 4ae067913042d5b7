"""Retention: what is too old or too much goes, oldest first, and never what a replay needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import CatalogChanged
from nodeagent.store.disk.upkeep import Keep
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from tests.store.samples import MACHINE, PATIENT, WALL_NS, condition, signal, transaction

DAY_NS = 24 * 3600 * 1_000_000_000
KEEP = Keep(retention_ns=30 * DAY_NS)


@asynccontextmanager
async def opened(
    directory: Path, days: float = 0, keep: Keep = KEEP, wall_days: float | None = None
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
    small = Keep(retention_ns=30 * DAY_NS, max_size=1024 * 1024)
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
