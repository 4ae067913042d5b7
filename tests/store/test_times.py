"""Events by their wall time: which numbers lie between two times."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Transaction
from tests.store.samples import MACHINE, PATIENT, event

SECOND_NS = 1_000_000_000
LAST = 6
TIMES_S = (100, 200, 50, 150, 250, 60)
"""Of events 1 to 6: the clock was set back twice."""


async def first(ledger: Ledger, since_s: int, after: int = 0, until: int = LAST) -> int | None:
    return await ledger.first_since(after, until, since_s * SECOND_NS)


async def last(ledger: Ledger, until_s: int, after: int = 0, until: int = LAST) -> int | None:
    return await ledger.last_before(after, until, until_s * SECOND_NS)


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger(tmp_path, MACHINE, limits=PATIENT)
    await ledger.open()
    for place, seconds in enumerate(TIMES_S):
        await ledger.commit(Transaction(events=((seconds * SECOND_NS, event(place)),)))
    yield ledger
    await ledger.close()


async def test_the_first_of_a_time_or_later(ledger: Ledger) -> None:
    assert [await first(ledger, since_s) for since_s in (0, 100, 101, 201, 251)] == [1, 1, 2, 5, None]


async def test_the_last_before_a_time(ledger: Ledger) -> None:
    assert [await last(ledger, until_s) for until_s in (300, 61, 60, 51, 50)] == [6, 6, 3, 3, None]


async def test_only_between_the_numbers_asked_for(ledger: Ledger) -> None:
    assert await first(ledger, 100, after=2) == 4
    assert await first(ledger, 201, until=4) is None
    assert await last(ledger, 60, after=3) is None
    assert await last(ledger, 151, until=5) == 4
