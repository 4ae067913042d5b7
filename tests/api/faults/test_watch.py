"""Watch: where a stream begins, what it says, and that nothing is lost or repeated."""

from pathlib import Path

import grpc
import pytest

from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import StoreId
from tests.api.samples import event
from tests.api.stage import FACTS, IMPATIENT, Stage
from tests.api.watching import after, watching
from tests.waiting import until

NEVER = pb.SNAPSHOT_MODE_NEVER
ALWAYS = pb.SNAPSHOT_MODE_ALWAYS


async def test_a_first_watch_begins_with_the_whole_state_and_goes_on_with_what_follows(stage: Stage) -> None:
    await stage.commit(event("gpu0"))
    async with watching(stage.socket) as stream:
        snapshot = await stream.snapshot()
        await stage.commit(event("gpu1"))
        following = await stream.batch()

    assert snapshot.reason == pb.SNAPSHOT_REASON_NO_POSITION
    assert (snapshot.seq, snapshot.oldest_seq, snapshot.missed_from_seq) == (1, 1, 0)
    assert [device.name for device in snapshot.devices] == ["node", "gpu0"]
    assert snapshot.devices[1].verdict == types_pb2.VERDICT_ISOLATE
    assert [reason.code for reason in snapshot.devices[1].reasons] == ["XID_79"]
    assert [condition.device for condition in snapshot.conditions] == ["gpu0"]
    assert [hold.reason for hold in snapshot.holds] == ["fan swap"]
    assert [source.name for source in snapshot.sources] == ["kmsg"]
    assert [(each.seq, each.device) for each in following] == [(2, "gpu1")]


async def test_every_message_says_which_node_which_boot_and_which_store(stage: Stage) -> None:
    await stage.commit(event())
    async with watching(stage.socket) as stream:
        first = await stream.next()
        await stage.commit(event())
        second = await stream.next()
    for message in (first, second):
        assert (message.node.node_id, message.node.boot_id) == (FACTS.node_id, FACTS.boot_id)
        assert message.store_id.uuid == stage.ledger.store_id.uuid
        assert message.durable


async def test_a_subscriber_that_comes_back_continues_without_loss_or_repeat(stage: Stage) -> None:
    for _ in range(5):
        await stage.commit(event())
    async with watching(stage.socket, after(stage.ledger.store_id, 2)) as stream:
        assert await stream.bookmark() == 2
        assert await stream.numbers(3) == [3, 4, 5]
        await stage.commit(event(), event())
        assert await stream.numbers(2) == [6, 7]


async def test_a_subscriber_continues_after_a_restart_of_the_daemon(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    await stage.reopen()
    async with watching(stage.socket, after(stage.ledger.store_id, 1)) as stream:
        assert await stream.bookmark() == 1
        assert await stream.numbers(2) == [2, 3]


async def test_a_number_of_another_store_gets_a_snapshot_that_says_so(stage: Stage) -> None:
    await stage.commit(event())
    other = StoreId(uuid="another", epoch=1)
    async with watching(stage.socket, after(other, 1)) as stream:
        assert (await stream.snapshot()).reason == pb.SNAPSHOT_REASON_OTHER_STORE


async def test_a_number_from_the_future_gets_a_snapshot_that_says_so(stage: Stage) -> None:
    await stage.commit(event())
    async with watching(stage.socket, after(stage.ledger.store_id, 2)) as stream:
        assert (await stream.snapshot()).reason == pb.SNAPSHOT_REASON_FROM_FUTURE


async def test_a_number_older_than_retention_gets_a_snapshot_that_says_what_is_missing(stage: Stage) -> None:
    await _forget_three_of_four(stage)
    async with watching(stage.socket, after(stage.ledger.store_id, 1)) as stream:
        snapshot = await stream.snapshot()
    assert snapshot.reason == pb.SNAPSHOT_REASON_BEFORE_RETENTION
    assert (snapshot.missed_from_seq, snapshot.seq, snapshot.oldest_seq) == (2, 4, 4)


async def test_the_number_just_before_the_oldest_event_can_be_continued(stage: Stage) -> None:
    await _forget_three_of_four(stage)
    async with watching(stage.socket, after(stage.ledger.store_id, 3)) as stream:
        assert await stream.bookmark() == 3
        assert await stream.numbers(1) == [4]


async def _forget_three_of_four(stage: Stage) -> None:
    """What is beyond retention goes when the store is next opened."""
    for _ in range(3):
        await stage.commit(event(), long_ago=True)
    await stage.commit(event())
    await stage.reopen()
    await until(lambda: stage.ledger.oldest_seq == 4)


async def test_where_no_snapshot_is_wanted_a_number_that_cannot_be_continued_is_out_of_range(
    stage: Stage,
) -> None:
    await stage.commit(event())
    store_id = stage.ledger.store_id
    cases = (
        (after(StoreId(uuid="another", epoch=1), 1, NEVER), "store_id another:1 is not"),
        (after(store_id, 9, NEVER), "after_seq 9 is beyond the last event 1"),
    )
    for request, reason in cases:
        async with watching(stage.socket, request) as stream:
            status, words = await stream.refusal()
        assert status is grpc.StatusCode.OUT_OF_RANGE
        assert reason in words
        assert "ask with snapshot IF_NEEDED or ALWAYS" in words


async def test_where_no_snapshot_is_wanted_a_number_beyond_retention_is_out_of_range(
    stage: Stage,
) -> None:
    await _forget_three_of_four(stage)
    async with watching(stage.socket, after(stage.ledger.store_id, 0, NEVER)) as stream:
        status, words = await stream.refusal()
    assert status is grpc.StatusCode.OUT_OF_RANGE
    assert "event 1 is no longer kept; the oldest is 4" in words


async def test_without_a_number_and_a_snapshot_the_stream_begins_with_what_comes_next(stage: Stage) -> None:
    await stage.commit(event(), event())
    async with watching(stage.socket, pb.WatchRequest(snapshot=NEVER)) as stream:
        assert await stream.bookmark() == 2
        await stage.commit(event())
        assert await stream.numbers(1) == [3]


async def test_a_snapshot_that_is_asked_for_comes_though_the_number_could_be_continued(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    async with watching(stage.socket, after(stage.ledger.store_id, 1, ALWAYS)) as stream:
        snapshot = await stream.snapshot()
        await stage.commit(event())
        assert await stream.numbers(1) == [4]
    assert (snapshot.reason, snapshot.missed_from_seq) == (pb.SNAPSHOT_REASON_REQUESTED, 2)


async def test_events_come_in_batches_of_at_most_what_was_asked(stage: Stage) -> None:
    await stage.commit(*(event() for _ in range(150)))
    request = after(stage.ledger.store_id, 0)
    async with watching(stage.socket, request) as stream:
        assert await stream.bookmark() == 0
        assert [len(await stream.batch()) for _ in range(3)] == [64, 64, 22]
    request.batch = 10
    async with watching(stage.socket, request) as stream:
        assert await stream.bookmark() == 0
        assert [len(await stream.batch()) for _ in range(2)] == [10, 10]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (pb.WatchRequest(batch=65), "batch: 65; it must be 1 to 64, or 0"),
        (pb.WatchRequest(after_seq=3), "after_seq: a number needs the store_id it belongs to"),
        (pb.WatchRequest(consumer="x" * 129), "consumer: 1 to 128 printable characters are needed"),
        (
            pb.WatchRequest(filter=pb.EventFilter(devices=[""])),
            "filter.devices: a name has 1 to 256",
        ),
        (
            pb.WatchRequest(filter=pb.EventFilter(codes=["XID_1"] * 101)),
            "filter.codes: 101 codes; at most 100",
        ),
        (
            pb.WatchRequest(filter=pb.EventFilter(codes=[""])),
            "filter.codes: a code has 1 to 256 characters, not 0",
        ),
        (
            pb.WatchRequest.FromString(b"\x20\x63"),
            "snapshot: 99 is not a SnapshotMode of nodeagent.v1",
        ),
        (
            pb.WatchRequest(filter=pb.EventFilter.FromString(b"\x18\x63")),
            "filter.minimum_level: 99 is not a Level of nodeagent.v1",
        ),
        (
            pb.WatchRequest(filter=pb.EventFilter.FromString(b"\x0a\x01\x63")),
            "filter.kinds: 99 is not an EventKind of nodeagent.v1",
        ),
    ],
)
async def test_a_request_out_of_range_is_refused_with_the_field_and_what_would_be_right(
    stage: Stage, change: pb.WatchRequest, words: str
) -> None:
    async with watching(stage.socket, change) as stream:
        status, reason = await stream.refusal()
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert words in reason


async def test_a_quiet_stream_tells_now_and_then_how_far_it_has_come(place: Path) -> None:
    stage = Stage(place, pace=IMPATIENT)
    await stage.open()
    await stage.commit(event())
    async with watching(stage.socket) as stream:
        assert (await stream.snapshot()).seq == 1
        assert await stream.bookmark() == 1
        assert await stream.bookmark() == 1
    await stage.close()


async def test_a_long_resume_reads_what_has_left_the_memory_from_the_disk(stage: Stage) -> None:
    for _ in range(6):
        await stage.commit(*(event() for _ in range(1000)))
    assert stage.feed.recent(0) is None
    async with watching(stage.socket, after(stage.ledger.store_id, 0)) as stream:
        assert await stream.bookmark() == 0
        assert await stream.numbers(6000) == list(range(1, 6001))
