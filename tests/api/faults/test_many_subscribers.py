"""Slow subscribers and many of them: each gets everything, in order, and none costs the others."""

import asyncio

from nodeagent.api import messages
from nodeagent.api.faults.frames import Frames
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent, StoreId
from tests.api.samples import event
from tests.api.stage import FACTS, Stage
from tests.api.watching import after, watching

SUBSCRIBERS = 100


async def test_a_subscriber_that_does_not_read_loses_nothing_and_holds_up_nobody(stage: Stage) -> None:
    async with (
        watching(stage.socket, after(stage.ledger.store_id, 0)) as slow,
        watching(stage.socket, after(stage.ledger.store_id, 0)) as quick,
    ):
        assert (await slow.bookmark(), await quick.bookmark()) == (0, 0)
        for _ in range(12):
            await stage.commit(*(event() for _ in range(500)))
        assert await quick.numbers(6000) == list(range(1, 6001))
        assert await slow.numbers(6000) == list(range(1, 6001))


async def test_a_hundred_subscribers_all_get_every_event_in_order(stage: Stage) -> None:
    async def subscriber(ready: asyncio.Semaphore) -> list[int]:
        async with watching(stage.socket) as stream:
            await stream.snapshot()
            ready.release()
            return await stream.numbers(200)

    ready = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as subscribers:
        tasks = [subscribers.create_task(subscriber(ready)) for _ in range(SUBSCRIBERS)]
        for _ in range(SUBSCRIBERS):
            await ready.acquire()
        for _ in range(20):
            await stage.commit(*(event() for _ in range(10)))
    assert [task.result() for task in tasks] == [list(range(1, 201))] * SUBSCRIBERS


def test_a_batch_put_together_from_bytes_is_what_protobuf_would_have_written() -> None:
    frames = Frames(FACTS)
    stored = [StoredEvent(seq=number, wall_ns=number, event=event()) for number in range(1, 65)]
    store_id = StoreId(uuid="u" * 36, epoch=1_700_000_000_000)
    expected = pb.WatchResponse(
        node=messages.node_identity(FACTS),
        store_id=messages.store_id(store_id),
        durable=True,
        batch=pb.EventBatch(events=[messages.event(each) for each in stored]),
    )
    assert pb.WatchResponse.FromString(batch(frames, store_id, stored)) == expected


def test_serialised_events_are_kept_up_to_a_bound_and_newest_first() -> None:
    frames = Frames(FACTS, capacity=10)
    stored = [StoredEvent(seq=number, wall_ns=number, event=event()) for number in range(1, 101)]
    for each in (*stored, *stored[:5]):
        frames.event(each)
    assert list(frames.kept) == list(range(91, 101))


def test_the_same_number_in_another_epoch_is_another_event() -> None:
    frames = Frames(FACTS)
    for epoch, device in ((1, "gpu0"), (2, "gpu1")):
        stored = [StoredEvent(seq=1, wall_ns=1, event=event(device))]
        response = pb.WatchResponse.FromString(batch(frames, StoreId(uuid="u", epoch=epoch), stored))
        assert [each.device for each in response.batch.events] == [device]


def batch(frames: Frames, store_id: StoreId, events: list[StoredEvent]) -> bytes:
    return frames.batch(store_id, True, [frames.event(each) for each in events])
