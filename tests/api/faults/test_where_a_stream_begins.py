"""What the comments of the proto say of where a stream begins, sentence by sentence, against what is done."""

from dataclasses import dataclass
from typing import Any, Final

import grpc
import pytest

from nodeagent.api import messages
from nodeagent.messages.generate import PROTO_ROOT
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.api.samples import event
from tests.api.stage import Stage
from tests.api.watching import watching
from tests.waiting import until

ACKED: Final = 2
LAST: Final = 5
NOBODYS: Final = "another-user"


def snapshot(reason: str, missed_from: int = 0) -> tuple[str, str, int]:
    return "snapshot", reason, missed_from


def events_after(seq: int) -> tuple[str, list[int]]:
    return "events", list(range(seq + 1, LAST + 1))


@dataclass(frozen=True)
class Sentence:
    """``said`` stands in the proto; a request with these fields then gives this. ``here``: of this store."""

    said: str
    gives: Any
    consumer: str = ""
    here: bool = False
    after_seq: int = 0
    snapshot: pb.SnapshotMode = pb.SNAPSHOT_MODE_UNSPECIFIED


SENTENCES: Final = (
    Sentence(
        "With a name and no store_id, the stream continues after the last event that was acknowledged",
        events_after(ACKED),
        consumer="scheduler",
    ),
    Sentence("under a name that is not known yet, as without one.", snapshot("NO_POSITION"), consumer="new"),
    Sentence(
        "The store that after_seq belongs to.", events_after(4), consumer="scheduler", here=True, after_seq=4
    ),
    Sentence(
        "Not set: the request gives no number, and after_seq must be 0.",
        ("INVALID_ARGUMENT", "after_seq: a number needs the store_id it belongs to"),
        after_seq=3,
    ),
    Sentence(
        "none, so that the stream begins with event 1 where that is still kept", events_after(0), here=True
    ),
    Sentence("The last event already seen.", events_after(3), here=True, after_seq=3),
    Sentence("As SNAPSHOT_MODE_IF_NEEDED.", snapshot("NO_POSITION")),
    Sentence("Always.", snapshot("REQUESTED", 3), consumer="scheduler", snapshot=pb.SNAPSHOT_MODE_ALWAYS),
    Sentence(
        "The first number this stream leaves out, and with it all up to `seq`",
        snapshot("REQUESTED", 2),
        here=True,
        after_seq=1,
        snapshot=pb.SNAPSHOT_MODE_ALWAYS,
    ),
    Sentence("The number asked for was never given.", snapshot("FROM_FUTURE"), here=True, after_seq=6),
    Sentence(
        "the request has no store_id, and no consumer that has acknowledged.",
        snapshot("NO_POSITION"),
        snapshot=pb.SNAPSHOT_MODE_IF_NEEDED,
    ),
    Sentence(
        "PERMISSION_DENIED: the consumer belongs to another identity.",
        ("PERMISSION_DENIED", f"consumer '{NOBODYS}' belongs to uid:65534"),
        consumer=NOBODYS,
    ),
    Sentence(
        "PERMISSION_DENIED: the consumer belongs to another identity.",
        ("PERMISSION_DENIED", f"consumer '{NOBODYS}' belongs to uid:65534"),
        consumer=NOBODYS,
        here=True,
    ),
)


def comments() -> str:
    """All of the file's, as running text."""
    lines = (PROTO_ROOT / "nodeagent/v1/fault_service.proto").read_text().splitlines()
    return " ".join(line.strip().removeprefix("// ") for line in lines if line.strip().startswith("//"))


def request_of(stage: Stage, sentence: Sentence) -> pb.WatchRequest:
    return pb.WatchRequest(
        consumer=sentence.consumer,
        store_id=messages.store_id(stage.ledger.store_id) if sentence.here else None,
        after_seq=sentence.after_seq,
        snapshot=sentence.snapshot,
    )


async def given(stage: Stage, request: pb.WatchRequest) -> Any:
    """How a stream begins: a refusal, a Snapshot, or a Bookmark and the events after it."""
    async with watching(stage.socket, request) as stream:
        try:
            first = await stream.next()
        except grpc.aio.AioRpcError as refused:
            return refused.code().name, refused.details()
        if first.HasField("snapshot"):
            reason = pb.SnapshotReason.Name(first.snapshot.reason).removeprefix("SNAPSHOT_REASON_")
            return snapshot(reason, first.snapshot.missed_from_seq)
        return "events", await stream.numbers(LAST - first.bookmark.seq)


@pytest.fixture
async def five(stage: Stage) -> Stage:
    """Five events, two of which a consumer has acknowledged, and a consumer of another user."""
    for _ in range(LAST):
        await stage.commit(event())
    acked = pb.AckRequest(consumer="scheduler", store_id=messages.store_id(stage.ledger.store_id), seq=ACKED)
    async with stage.client() as client:
        await client.call(acked)
    await stage.ledger.ack(NOBODYS, "uid:65534", stage.ledger.store_id, 1)
    return stage


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.said[:40])
async def test_a_stream_begins_as_the_proto_says(five: Stage, sentence: Sentence) -> None:
    assert sentence.said in comments()
    assert await given(five, request_of(five, sentence)) == sentence.gives


async def test_where_the_first_event_is_gone_zero_gives_a_snapshot_and_the_list_what_is_kept(
    stage: Stage,
) -> None:
    assert "and with a Snapshot where it is not; ListEvents gives what is kept." in comments()
    await stage.commit(event(), event(), event(), long_ago=True)
    await stage.commit(event(), event())
    await stage.reopen()
    await until(lambda: stage.ledger.oldest_seq == 4)
    from_zero = pb.WatchRequest(store_id=messages.store_id(stage.ledger.store_id))
    async with stage.client() as client:
        listed = await client.call(pb.ListEventsRequest())
    assert await given(stage, from_zero) == snapshot("BEFORE_RETENTION", 1)
    assert [each.seq for each in listed.events] == [4, 5]


async def test_where_no_event_is_kept_the_oldest_one_is_the_next(stage: Stage) -> None:
    assert comments().count("one more than the last event: none.") == 3
    for last in (0, 2):
        async with stage.client() as client:
            node = await client.call(pb.GetNodeRequest())
            listed = await client.call(pb.ListEventsRequest())
        async with watching(stage.socket) as stream:
            begun = await stream.snapshot()
        seqs = (node.oldest_seq, listed.oldest_seq, begun.oldest_seq, node.last_seq)
        assert seqs == (last + 1, last + 1, last + 1, last)
        await stage.commit(event(), event(), long_ago=True)
        await stage.reopen()
        await until(lambda: stage.ledger.oldest_seq == 3)
