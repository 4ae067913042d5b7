"""Retention: what is too old or too much goes, oldest first, and never what a replay needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeagent.core.model import CatalogChanged
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from nodeagent.store.upkeep import Keep
from tests.store.samples import MACHINE, PATIENT, WALL_NS, condition, signal, transaction

DAY_NS = 24 * 3600 * 1_000_000_000
KEEP = Keep(retention_ns=30 * DAY_NS)


@asynccontextmanager
async def opened(directory: Path, days: float = 0, keep: Keep = KEEP) -> AsyncIterator[Ledger]:
    """A ledger, so many days after ``WALL_NS``."""
    ledger = Ledger(
        directory, MACHINE, limits=PATIENT, keep=keep, wall_ns=lambda: WALL_NS + int(days * DAY_NS)
    )
    await ledger.open()
    yield ledger
    await ledger.close()


async def test_events_and_audits_older_than_the_retention_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(transaction(1, events=1200, wall_ns=WALL_NS))
        await ledger.audit(WALL_NS, "uid 0", "IsolateDevice", "npu0", "OK")
        await ledger.commit(transaction(1201, events=3, wall_ns=WALL_NS + 2 * DAY_NS))
        await ledger.audit(WALL_NS + 2 * DAY_NS, "uid 0", "ReleaseDevice", "npu0", "OK")
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        assert (ledger.oldest_seq, ledger.last_seq) == (1201, 1203)
        assert [one.seq for one in await ledger.read_events(0)] == [1201, 1202, 1203]
        assert [row[3] for row in await ledger.read_audit()] == ["ReleaseDevice"]
    async with opened(tmp_path, days=31) as again:
        assert again.oldest_seq == 1201


async def test_when_all_events_are_gone_the_numbers_go_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(transaction(1, events=5, wall_ns=WALL_NS))
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        assert (ledger.oldest_seq, ledger.last_seq) == (6, 5)
        assert (await ledger.commit(transaction(6, wall_ns=WALL_NS + 31 * DAY_NS))).last_seq == 6


async def test_inputs_since_the_base_stay_whatever_their_age(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.commit(transaction(1, inputs=3, events=0, wall_ns=WALL_NS))
        await ledger.compact([condition(1)], engine_now_ns=3)
        await ledger.commit(transaction(4, inputs=2, events=0, wall_ns=WALL_NS))
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
            await ledger.commit(transaction(first, inputs=0, events=100, wall_ns=WALL_NS))
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
            change = Stamped(rule_ns=number, wall_ns=WALL_NS, input=CatalogChanged(digest=digest))
            await ledger.commit(Transaction(inputs=(change,), engine_now_ns=number))
        if compacted:
            await ledger.compact([], engine_now_ns=9)
    async with opened(tmp_path, days=31) as ledger:
        await ledger.trim()
        found = [await ledger.get_catalog(digest) for digest in ("aa", "bb", "cc")]
        assert found == ([None, None, b"cc"] if compacted else [b"aa", b"bb", b"cc"])
        assert await ledger.last_good_catalog() == ("cc", b"cc")
