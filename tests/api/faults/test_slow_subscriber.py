"""A stream that is read so slowly that what it still wants is gone: it sees from which number on.

The stream is driven here without gRPC, whose buffers would decide how far behind it is.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.api.access.limits import ANSWER_BYTES
from nodeagent.api.access.quota import FairQueue, Quota
from nodeagent.api.faults.frames import Frames
from nodeagent.api.faults.history import EventHistory
from nodeagent.api.faults.watch import MAX_BATCH, StreamPace, StreamPosition, Subscription
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import View
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.disk.retention import RetentionPolicy
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, StoredEvent, StoreId, Transaction
from tests.api.samples import event
from tests.api.stage import FACTS, ROOT
from tests.store.samples import PATIENT
from tests.waiting import until

NOW_NS = 1_700_000_000_000_000_000
LONG_AGO_NS = 1
RING = 10
MANY = 1000


@asynccontextmanager
async def opened(place: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger(place, "machine-a", limits=PATIENT, keep=RetentionPolicy(upkeep_s=0.01))
    await ledger.open()
    yield ledger
    await ledger.close()


def publication(store_id: StoreId, seq: int) -> Publication:
    return Publication(view=View(), store_id=store_id, seq=seq, durable=True, wall_offset_ns=0)


async def commit(ledger: Ledger, feed: EventFeed, count: int, at_ns: int) -> None:
    """So many events of that time, now."""
    events = tuple((time.time_ns(), replace(event(), at_ns=at_ns)) for _ in range(count))
    committed = await ledger.commit(Transaction(events=events, engine_now_ns=NOW_NS))
    feed.publish(publication(committed.store_id, committed.last_seq), committed.events)


def subscription(
    ledger: Ledger, feed: EventFeed, snapshot: pb.SnapshotMode = pb.SNAPSHOT_MODE_IF_NEEDED
) -> Subscription:
    return Subscription(
        feed=feed,
        history=EventHistory(feed, ledger),
        turns=FairQueue(),
        frames=Frames(FACTS),
        answers=Quota(ANSWER_BYTES),
        caller=ROOT,
        request=pb.WatchRequest(snapshot=snapshot),
        position=StreamPosition(store_id=ledger.store_id, seq=0),
        pace=StreamPace(),
    )


async def test_a_stream_whose_next_event_left_retention_gets_a_snapshot_and_goes_on(place: Path) -> None:
    feed = EventFeed(capacity=RING)
    async with opened(place) as ledger:
        feed.publish(publication(ledger.store_id, 0))
        stream = subscription(ledger, feed).responses()
        opening = pb.WatchResponse.FromString(await anext(stream))
        await commit(ledger, feed, 2 * RING, LONG_AGO_NS)
        await until(lambda: ledger.oldest_seq == 2 * RING + 1)
        snapshot = pb.WatchResponse.FromString(await anext(stream)).snapshot
        await commit(ledger, feed, 1, NOW_NS)
        following = pb.WatchResponse.FromString(await anext(stream)).batch
        await stream.aclose()

    assert opening.bookmark.seq == 0
    assert snapshot.reason == pb.SNAPSHOT_REASON_FELL_BEHIND
    assert (snapshot.missed_from_seq, snapshot.seq) == (1, 2 * RING)
    assert [each.seq for each in following.events] == [2 * RING + 1]


async def test_where_no_snapshot_is_wanted_a_stream_that_fell_behind_ends_out_of_range(place: Path) -> None:
    feed = EventFeed(capacity=RING)
    async with opened(place) as ledger:
        feed.publish(publication(ledger.store_id, 0))
        stream = subscription(ledger, feed, pb.SNAPSHOT_MODE_NEVER).responses()
        await anext(stream)
        await commit(ledger, feed, 2 * RING, LONG_AGO_NS)
        await until(lambda: ledger.oldest_seq == 2 * RING + 1)
        with pytest.raises(Refusal) as refused:
            await anext(stream)

    assert refused.value.status is Status.OUT_OF_RANGE
    assert "event 1 is no longer kept; the oldest is 21" in refused.value.reason


async def test_a_stream_too_far_behind_when_the_epoch_changes_is_told_from_where_it_misses(
    place: Path,
) -> None:
    feed = EventFeed(capacity=RING)
    async with opened(place) as ledger:
        feed.publish(publication(ledger.store_id, 0))
        stream = subscription(ledger, feed).responses()
        await anext(stream)
        await commit(ledger, feed, MANY, NOW_NS)
        read = pb.WatchResponse.FromString(await anext(stream))
        epoch = StoreId(uuid=ledger.store_id.uuid, epoch=ledger.store_id.epoch + 1)
        last = StoredEvent(seq=MANY + 1, wall_ns=1, event=event())
        feed.publish(publication(epoch, last.seq), (last,))
        response = pb.WatchResponse.FromString(await anext(stream))
        await stream.aclose()

    assert [each.seq for each in read.batch.events] == list(range(1, MAX_BATCH + 1))
    assert response.snapshot.reason == pb.SNAPSHOT_REASON_EPOCH_CHANGED
    assert (response.snapshot.missed_from_seq, response.snapshot.seq) == (MAX_BATCH + 1, last.seq)
    assert response.store_id.epoch == epoch.epoch
