"""Named consumers: whose they are, what they acknowledged, and when they are forgotten."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.store.consumers import (
    ANYBODY_LOCAL,
    KEPT_FOR_OPERATORS,
    MOST_CONSUMERS,
    MOST_OF_ONE,
    Consumer,
)
from nodeagent.store.errors import BeyondLastError, OtherOwnerError, OtherStoreError, TooManyConsumersError
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Transaction
from tests.store.samples import MACHINE, PATIENT, WALL_NS, transaction

YEAR_NS = 365 * 24 * 3600 * 1_000_000_000
EVENTS = 10


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
    await ledger.commit(transaction(1, events=EVENTS))
    yield ledger
    await ledger.close()


async def reopened(directory: Path, clock: Clock) -> Ledger:
    again = Ledger(directory, MACHINE, limits=PATIENT, wall_ns=clock)
    await again.open()
    return again


async def fill(ledger: Ledger, count: int, seq: int = 1) -> None:
    """So many consumers, of as few owners as there can be."""
    for number in range(count):
        await ledger.ack(f"consumer-{number:02}", f"uid:{1000 + number // MOST_OF_ONE}", ledger.store_id, seq)


async def pass_by_retention(ledger: Ledger) -> None:
    """All events there are."""
    await ledger.commit(Transaction(engine_now_ns=YEAR_NS))
    await ledger.trim()
    assert ledger.oldest_seq == EVENTS + 1


async def test_an_acknowledgement_survives_a_restart(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    taken = await ledger.ack("scheduler", "uid:0", ledger.store_id, 7)
    assert taken == Consumer(name="scheduler", owner="uid:0", seq=7, acked_wall_ns=WALL_NS)
    await ledger.close()
    again = await reopened(tmp_path, clock)
    assert again.consumers() == (taken,)
    await again.close()


async def test_a_lower_acknowledgement_is_ignored(ledger: Ledger) -> None:
    await ledger.ack("scheduler", "uid:0", ledger.store_id, 7)
    assert (await ledger.ack("scheduler", "uid:0", ledger.store_id, 3)).seq == 7


async def test_a_number_never_given_is_refused(ledger: Ledger) -> None:
    with pytest.raises(BeyondLastError, match="11 was never given: the last one is 10"):
        await ledger.ack("scheduler", "uid:0", ledger.store_id, 11)
    assert ledger.consumers() == ()


async def test_another_store_id_is_refused(ledger: Ledger) -> None:
    with pytest.raises(OtherStoreError, match="not in force"):
        await ledger.ack("scheduler", "uid:0", replace(ledger.store_id, epoch=99), 1)


async def test_another_identity_is_refused(ledger: Ledger) -> None:
    await ledger.ack("scheduler", "uid:0", ledger.store_id, 1)
    with pytest.raises(OtherOwnerError, match="'scheduler' belongs to uid:0: choose another name"):
        await ledger.ack("scheduler", "uid:1000", ledger.store_id, 2)
    assert [one.seq for one in ledger.consumers()] == [1]


async def test_one_owner_has_so_many_names(ledger: Ledger) -> None:
    await fill(ledger, MOST_OF_ONE)
    with pytest.raises(TooManyConsumersError, match="uid:1000 has 16 consumers already: reuse a name"):
        await ledger.ack("one-more", "uid:1000", ledger.store_id, 1)
    assert (await ledger.ack("consumer-03", "uid:1000", ledger.store_id, 2)).seq == 2
    assert (await ledger.ack("one-more", "uid:2000", ledger.store_id, 1)).owner == "uid:2000"


async def test_when_others_have_taken_all_names_some_are_left_for_operators(ledger: Ledger) -> None:
    others = MOST_CONSUMERS - KEPT_FOR_OPERATORS
    await fill(ledger, others)
    with pytest.raises(TooManyConsumersError, match="there are 56 consumers already"):
        await ledger.ack("one-more", "uid:2000", ledger.store_id, 1)
    for number in range(KEPT_FOR_OPERATORS):
        await ledger.ack(f"operator-{number}", "uid:0", ledger.store_id, 1, is_operator=True)
    with pytest.raises(TooManyConsumersError, match="there are 64 consumers already"):
        await ledger.ack("operator-9", "uid:0", ledger.store_id, 1, is_operator=True)


async def test_a_wall_clock_that_jumps_a_year_forgets_nobody(
    ledger: Ledger, tmp_path: Path, clock: Clock
) -> None:
    await fill(ledger, 3)
    clock.now_ns += YEAR_NS
    await ledger.ack("consumer-00", "uid:1000", ledger.store_id, 2)
    assert [one.name for one in ledger.consumers()] == ["consumer-00", "consumer-01", "consumer-02"]
    await ledger.close()
    again = await reopened(tmp_path, clock)
    assert [one.seq for one in again.consumers()] == [2, 1, 1]
    await again.close()


async def test_who_is_behind_what_is_kept_is_remembered_until_its_place_is_needed(
    ledger: Ledger, tmp_path: Path, clock: Clock
) -> None:
    await fill(ledger, MOST_OF_ONE)
    await ledger.ack("consumer-00", "uid:1000", ledger.store_id, EVENTS)
    await pass_by_retention(ledger)
    assert len(ledger.consumers()) == MOST_OF_ONE
    await ledger.ack("consumer-new", "uid:1000", ledger.store_id, EVENTS)
    names = [one.name for one in ledger.consumers()]
    assert (names[0], names[1], names[-1], len(names)) == (
        "consumer-00",
        "consumer-02",
        "consumer-new",
        MOST_OF_ONE,
    )
    await ledger.close()
    again = await reopened(tmp_path, clock)
    assert [one.name for one in again.consumers()] == names
    await again.close()


async def test_who_has_seen_everything_keeps_its_place_whatever_is_kept(ledger: Ledger) -> None:
    await fill(ledger, MOST_OF_ONE, seq=EVENTS)
    await pass_by_retention(ledger)
    with pytest.raises(TooManyConsumersError):
        await ledger.ack("one-more", "uid:1000", ledger.store_id, EVENTS)


async def test_what_was_acknowledged_before_users_were_told_apart_is_the_first_users_who_goes_on(
    ledger: Ledger, tmp_path: Path, clock: Clock
) -> None:
    await ledger.ack("scheduler", ANYBODY_LOCAL, ledger.store_id, 5)
    with pytest.raises(OtherOwnerError, match="belongs to unix"):
        await ledger.ack("scheduler", "certificate:scheduler", ledger.store_id, 6)
    assert (await ledger.ack("scheduler", "uid:1000", ledger.store_id, 4)).seq == 5
    with pytest.raises(OtherOwnerError, match="belongs to uid:1000"):
        await ledger.ack("scheduler", "uid:2000", ledger.store_id, 6)
    await ledger.close()
    again = await reopened(tmp_path, clock)
    assert [(one.owner, one.seq) for one in again.consumers()] == [("uid:1000", 5)]
    await again.close()


async def test_a_name_that_is_taken_over_counts_as_one_of_its_new_owner(ledger: Ledger) -> None:
    """Nobody takes over more of them than one may have; whether others have names does not matter."""
    await fill(ledger, MOST_CONSUMERS - KEPT_FOR_OPERATORS - MOST_OF_ONE - 1)
    *names, last = (f"old-{number:02}" for number in range(MOST_OF_ONE))
    for name in (*names, last):
        await ledger.ack(name, ANYBODY_LOCAL, ledger.store_id, 1)
    for name in ("new", *names):
        assert (await ledger.ack(name, "uid:2000", ledger.store_id, 1)).owner == "uid:2000"
    with pytest.raises(TooManyConsumersError, match="uid:2000 has 16 consumers already: reuse a name"):
        await ledger.ack(last, "uid:2000", ledger.store_id, 1)
    assert (await ledger.ack(last, "uid:3000", ledger.store_id, 1)).owner == "uid:3000"


async def test_a_deleted_consumer_is_gone_for_good(ledger: Ledger, tmp_path: Path, clock: Clock) -> None:
    await fill(ledger, 2)
    await ledger.delete_consumer("consumer-00")
    assert ledger.consumer("consumer-00") is None
    await ledger.close()
    again = await reopened(tmp_path, clock)
    assert [one.name for one in again.consumers()] == ["consumer-01"]
    await again.close()


async def test_one_that_is_set_back_stays_so_over_a_restart_and_goes_on_from_there(
    ledger: Ledger, tmp_path: Path, clock: Clock
) -> None:
    await ledger.ack("scheduler", "uid:1000", ledger.store_id, 9)
    set_back, durable = await ledger.rewind("scheduler", ledger.store_id, 3)
    assert (set_back.seq, set_back.owner, durable) == (3, "uid:1000", True)
    await ledger.close()
    again = await reopened(tmp_path, clock)
    assert again.consumers() == (set_back,)
    assert (await again.ack("scheduler", "uid:1000", again.store_id, 5)).seq == 5
    await again.close()


async def test_one_that_retention_has_passed_is_set_back_no_further(ledger: Ledger) -> None:
    await ledger.ack("behind", "uid:1000", ledger.store_id, 4)
    await ledger.ack("ahead", "uid:1000", ledger.store_id, EVENTS)
    await pass_by_retention(ledger)
    assert [(await ledger.rewind(name, ledger.store_id, 0))[0].seq for name in ("behind", "ahead")] == [
        4,
        EVENTS,
    ]
