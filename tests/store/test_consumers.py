"""Named consumers: whose they are, what they acknowledged, and when they are forgotten."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.store.consumers import EXPIRY_NS, MOST_CONSUMERS, Consumer
from nodeagent.store.errors import BeyondLastError, OtherOwnerError, OtherStoreError, TooManyConsumersError
from nodeagent.store.ledger import Ledger
from tests.store.samples import MACHINE, PATIENT, WALL_NS, transaction


class Clock:
    def __init__(self) -> None:
        self.now_ns = WALL_NS

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def ledger(tmp_path: Path, clock: Clock) -> AsyncIterator[Ledger]:
    """Holds ten events."""
    ledger = Ledger(tmp_path, MACHINE, limits=PATIENT, wall_ns=clock)
    await ledger.open()
    await ledger.commit(transaction(1, events=10))
    yield ledger
    await ledger.close()


async def test_an_acknowledgement_survives_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    taken = await ledger.ack("scheduler", "uid 0", ledger.store_id, 7)
    assert taken == Consumer(name="scheduler", owner="uid 0", seq=7, acked_wall_ns=WALL_NS)
    await ledger.close()
    again = Ledger(tmp_path, MACHINE, limits=PATIENT, wall_ns=clock)
    await again.open()
    assert again.consumers() == (taken,)
    await again.close()


async def test_a_lower_acknowledgement_is_ignored(ledger: Ledger) -> None:
    await ledger.ack("scheduler", "uid 0", ledger.store_id, 7)
    assert (await ledger.ack("scheduler", "uid 0", ledger.store_id, 3)).seq == 7


async def test_a_number_never_given_is_refused(ledger: Ledger) -> None:
    with pytest.raises(BeyondLastError, match="11 was never given: the last one is 10"):
        await ledger.ack("scheduler", "uid 0", ledger.store_id, 11)
    assert ledger.consumers() == ()


async def test_another_store_id_is_refused(ledger: Ledger) -> None:
    with pytest.raises(OtherStoreError, match="not in force"):
        await ledger.ack("scheduler", "uid 0", replace(ledger.store_id, epoch=99), 1)


async def test_another_identity_is_refused(ledger: Ledger) -> None:
    await ledger.ack("scheduler", "uid 0", ledger.store_id, 1)
    with pytest.raises(OtherOwnerError, match="belongs to another identity"):
        await ledger.ack("scheduler", "uid 1000", ledger.store_id, 2)


async def test_there_are_at_most_64(ledger: Ledger) -> None:
    for number in range(MOST_CONSUMERS):
        await ledger.ack(f"consumer-{number}", "uid 0", ledger.store_id, 1)
    with pytest.raises(TooManyConsumersError, match="64"):
        await ledger.ack("one-more", "uid 0", ledger.store_id, 1)
    assert (await ledger.ack("consumer-3", "uid 0", ledger.store_id, 2)).seq == 2


async def test_who_was_silent_for_thirty_days_is_forgotten_and_makes_room(
    ledger: Ledger, clock: Clock
) -> None:
    for number in range(MOST_CONSUMERS):
        await ledger.ack(f"consumer-{number}", "uid 0", ledger.store_id, 1)
    clock.now_ns += EXPIRY_NS
    await ledger.ack("consumer-0", "uid 0", ledger.store_id, 2)
    clock.now_ns += 1
    assert [one.name for one in ledger.consumers()] == ["consumer-0"]
    assert (await ledger.ack("consumer-1", "uid 1000", ledger.store_id, 1)).owner == "uid 1000"
