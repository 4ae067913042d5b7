"""The event feed: what readers see is what was published, and nobody waits longer than needed."""

import asyncio

from nodeagent.core.model import View
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoredEvent, StoreId
from tests.store.samples import event

STORE = StoreId(uuid="u", epoch=1)


def publication(seq: int, store_id: StoreId = STORE) -> Publication:
    return Publication(view=View(), store_id=store_id, seq=seq, durable=True, wall_offset_ns=0)


def events(first: int, last: int) -> tuple[StoredEvent, ...]:
    return tuple(StoredEvent(seq=seq, wall_ns=seq, event=event(seq)) for seq in range(first, last + 1))


def test_before_anything_is_published_the_board_is_empty_and_not_durable() -> None:
    feed = EventFeed()
    assert (feed.current.seq, feed.current.durable, feed.recent(0)) == (0, False, ())


def test_recent_events_are_those_beyond_a_number() -> None:
    feed = EventFeed()
    feed.publish(publication(3), events(1, 3))
    feed.publish(publication(5), events(4, 5))
    assert feed.recent(2) == events(3, 5)
    assert feed.recent(5) == ()


def test_what_has_left_the_ring_must_be_read_from_the_ledger() -> None:
    feed = EventFeed(capacity=4)
    feed.publish(publication(6), events(1, 6))
    assert feed.recent(2) == events(3, 6)
    assert feed.recent(1) is None


def test_events_from_before_the_start_must_be_read_from_the_ledger() -> None:
    feed = EventFeed()
    feed.publish(publication(10))
    assert feed.recent(10) == ()
    assert feed.recent(9) is None
    feed.publish(publication(12), events(11, 12))
    assert feed.recent(10) == events(11, 12)
    assert feed.recent(9) is None


async def test_a_hundred_waiters_are_woken_by_one_publication_once_each() -> None:
    feed = EventFeed()
    feed.publish(publication(1), events(1, 1))
    waiters = [asyncio.create_task(feed.wait_beyond(1)) for _ in range(100)]
    await asyncio.sleep(0)
    feed.publish(publication(2), events(2, 2))
    assert await asyncio.gather(*waiters) == [feed.current] * 100


async def test_a_publication_without_new_events_wakes_nobody_who_waits_for_events() -> None:
    feed = EventFeed()
    feed.publish(publication(1), events(1, 1))
    waiter = asyncio.create_task(feed.wait_beyond(1))
    await asyncio.sleep(0)
    feed.publish(publication(1))
    await asyncio.sleep(0)
    assert not waiter.done()
    feed.publish(publication(2), events(2, 2))
    assert (await waiter).seq == 2


async def test_a_waiter_that_is_cancelled_takes_no_other_with_it() -> None:
    feed = EventFeed()
    first, second = (asyncio.create_task(feed.wait_beyond(0)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    feed.publish(publication(1), events(1, 1))
    assert (await second).seq == 1


async def test_who_names_a_store_id_is_woken_when_another_is_in_force() -> None:
    feed = EventFeed()
    feed.publish(publication(1), events(1, 1))
    waiter = asyncio.create_task(feed.wait_beyond(1, STORE))
    await asyncio.sleep(0)
    feed.publish(publication(1, StoreId(uuid="u", epoch=2)))
    assert (await waiter).store_id.epoch == 2
