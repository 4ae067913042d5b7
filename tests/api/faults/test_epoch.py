"""When the store's numbers leave the disk while streams are open: they go on, and say so."""

from contextlib import aclosing

from nodeagent.api.access.limits import ANSWER_BYTES
from nodeagent.api.access.quota import FairQueue, Quota
from nodeagent.api.faults.frames import Frames
from nodeagent.api.faults.history import EventHistory
from nodeagent.api.faults.watch import StreamPace, Subscription
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.api.samples import event
from tests.api.stage import FACTS, ROOT, Stage
from tests.api.watching import after, watching


async def test_an_open_stream_gets_the_event_then_a_snapshot_that_is_not_durable_and_goes_on(
    stage: Stage,
) -> None:
    await stage.commit(event("gpu0"))
    async with watching(stage.socket) as stream:
        await stream.snapshot()
        stage.publish_in_epoch(7, event("gpu1"))
        batch, snapshot = await stream.next(), await stream.next()
        stage.publish_in_epoch(7, event("gpu2"))
        following = await stream.next()

    assert [each.seq for each in batch.batch.events] == [2]
    assert snapshot.snapshot.reason == pb.SNAPSHOT_REASON_EPOCH_CHANGED
    assert (snapshot.snapshot.seq, snapshot.snapshot.missed_from_seq) == (2, 0)
    assert [each.seq for each in following.batch.events] == [3]
    for message in (batch, snapshot, following):
        assert (message.store_id.epoch, message.durable) == (7, False)


async def test_an_event_told_while_the_stream_enters_the_epoch_is_not_swallowed_by_the_snapshot(
    stage: Stage,
) -> None:
    await stage.commit(event("gpu0"))
    subscription = Subscription(
        feed=stage.feed,
        history=EventHistory(stage.feed, stage.ledger),
        turns=FairQueue(),
        frames=Frames(FACTS),
        answers=Quota(ANSWER_BYTES),
        caller=ROOT,
        request=pb.WatchRequest(),
        position=None,
        pace=StreamPace(),
    )
    async with aclosing(subscription.responses()) as responses:
        responses_read = [await anext(responses)]
        for device in ("gpu1", "gpu2"):
            stage.publish_in_epoch(7, event(device))
            responses_read.append(await anext(responses))
        responses_read.append(await anext(responses))

    first, batch, second, snapshot = map(pb.WatchResponse.FromString, responses_read)
    assert first.WhichOneof("payload") == "snapshot"
    assert [[each.seq for each in one.batch.events] for one in (batch, second)] == [[2], [3]]
    assert (snapshot.snapshot.seq, snapshot.snapshot.missed_from_seq) == (3, 0)


async def test_a_position_of_the_epoch_before_gets_a_snapshot(stage: Stage) -> None:
    await stage.commit(event())
    before = stage.feed.current.store_id
    stage.publish_in_epoch(7, event())
    async with watching(stage.socket, after(before, 1)) as stream:
        assert (await stream.snapshot()).reason == pb.SNAPSHOT_REASON_OTHER_STORE


async def test_a_position_of_the_present_epoch_is_continued(stage: Stage) -> None:
    await stage.commit(event())
    stage.publish_in_epoch(7, event(), event())
    async with watching(stage.socket, after(stage.feed.current.store_id, 2)) as stream:
        assert await stream.bookmark() == 2
        assert await stream.numbers(1) == [3]


async def test_a_stream_is_told_when_its_numbers_are_on_the_disk_again(stage: Stage) -> None:
    stage.publish_in_epoch(7, event())
    async with watching(stage.socket) as stream:
        assert not (await stream.next()).durable
        stage.publish_in_epoch(7, event(), durable=True)
        assert (await stream.next()).durable
