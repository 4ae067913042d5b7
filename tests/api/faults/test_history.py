"""Stored events page by page: what many ask for is read once, and what nothing passes costs nothing."""

import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from nodeagent.api.access.limits import ANSWER_BYTES
from nodeagent.api.access.quota import FairQueue, Quota
from nodeagent.api.faults import list_events, watch
from nodeagent.api.faults.filters import Filter
from nodeagent.api.faults.frames import Frames
from nodeagent.api.faults.history import PAGE_EVENTS, PAGES_KEPT, EventHistory
from nodeagent.api.faults.list_events import Search
from nodeagent.api.faults.watch import MAX_BATCH, StreamPace, StreamPosition, Subscription
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.disk.writer import Database
from nodeagent.store.layout import EMPTIED, EVENT
from nodeagent.store.records import StoredEvent
from tests.api.samples import event
from tests.api.stage import FACTS, ROOT, Stage
from tests.api.watching import after, watching

STORED = 6000
STREAMS = 40
KIB = 1024


@asynccontextmanager
async def filled(place: Path) -> AsyncIterator[Stage]:
    stage = Stage(place)
    await stage.open()
    try:
        for _ in range(STORED // 1000):
            await stage.commit(*(event() for _ in range(1000)))
        yield stage
    finally:
        await stage.close()


class Reads:
    """Counts what is read from the disk."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages: list[int] = []
        read_events = stage.ledger.read_events

        async def counted(after_seq: int, limit: int = 0) -> Sequence[StoredEvent]:
            self.pages.append(after_seq)
            return await read_events(after_seq, limit)

        monkeypatch.setattr(stage.ledger, "read_events", counted)


def search(stage: Stage, history: EventHistory, wanted: pb.EventFilter, limit: int = 1000) -> Search:
    return Search(
        history=history,
        frames=Frames(FACTS),
        turns=FairQueue(),
        identity="uid:0",
        wanted=Filter(wanted),
        limit=limit,
        after_seq=0,
    )


async def test_what_many_ask_for_is_read_from_the_disk_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with filled(place) as stage:
        reads, history = Reads(stage, monkeypatch), EventHistory(stage.feed, stage.ledger)
        for after_seq in (0, 0, 5, PAGE_EVENTS - 1, PAGE_EVENTS):
            events = await history.read(after_seq)
            assert events[0].seq == after_seq + 1
        assert reads.pages == [0, PAGE_EVENTS]


async def make_way(stage: Stage, first: int, last: int) -> None:
    """As retention does with what is told of jobs."""

    def empty(database: Database) -> None:
        rows = [EVENT.sealed((seq, 1, EMPTIED)) for seq in range(first, last + 1)]
        database.execute([(EVENT.replace, rows)])

    await stage.ledger._durability.on_disk(empty)


@pytest.mark.parametrize(("first", "last"), [(5, 64), (1, 64), (10, 200), (129, 129), (60, 70)])
async def test_what_has_made_way_is_passed_over(place: Path, first: int, last: int) -> None:
    async with filled(place) as stage:
        await make_way(stage, first, last)
        history = EventHistory(stage.feed, stage.ledger)
        found: list[int] = []
        while len(found) < 300:
            events = await history.read(found[-1] if found else 0)
            found += [each.seq for each in events]
        assert found[:300] == [seq for seq in range(1, 1000) if not first <= seq <= last][:300]
        for after_seq in range(first - 1, last + 1):
            assert (await history.read(after_seq))[0].seq == last + 1
        listed = await search(stage, history, pb.EventFilter(), limit=300).oldest()
        assert len(listed.events) == 300


async def test_only_so_many_pages_are_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with filled(place) as stage:
        reads, history = Reads(stage, monkeypatch), EventHistory(stage.feed, stage.ledger)
        for page in range(PAGES_KEPT // 2):
            await history.read(page * PAGE_EVENTS)
        monkeypatch.setattr("nodeagent.api.faults.history.PAGES_KEPT", 2)
        for page in (20, 21, 22):
            await history.read(page * PAGE_EVENTS)
        reads.pages.clear()
        await history.read(22 * PAGE_EVENTS)
        await history.read(0)
        assert reads.pages == [0]


async def test_what_is_in_memory_is_not_read_from_the_disk(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with filled(place) as stage:
        reads, history = Reads(stage, monkeypatch), EventHistory(stage.feed, stage.ledger)
        assert [each.seq for each in await history.read(STORED - 2)] == [STORED - 1, STORED]
        assert len(await history.newest(1000)) == 1000
        assert reads.pages == []


async def test_a_filter_that_nothing_passes_costs_no_memory(place: Path) -> None:
    async with filled(place) as stage:
        history = EventHistory(stage.feed, stage.ledger)
        nothing = pb.EventFilter(devices=["nothing"])
        await search(stage, history, nothing).oldest()
        tracemalloc.start()
        try:
            found = await search(stage, history, nothing).oldest()
            newest = await search(stage, history, nothing).newest()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (found.events, found.next_after_seq, found.more) == ((), STORED, False)
        assert newest.events == ()
        assert most < PAGES_KEPT * PAGE_EVENTS * 4 * KIB


async def test_one_call_looks_at_so_many_events_and_says_from_where_to_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_events, "MAX_SCANNED", 10 * PAGE_EVENTS)
    async with filled(place) as stage:
        history = EventHistory(stage.feed, stage.ledger)
        found = await search(stage, history, pb.EventFilter(devices=["nothing"])).oldest()
    assert (found.events, found.next_after_seq, found.more) == ((), 10 * PAGE_EVENTS, True)


async def test_an_answer_has_so_many_bytes_and_the_next_one_goes_on_without_a_hole(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.commit(*(event() for _ in range(50)))
    monkeypatch.setattr(list_events, "MAX_LISTED_BYTES", 2 * KIB)
    numbers: list[int] = []
    async with stage.client() as client:
        more = True
        while more:
            page = await client.call(pb.ListEventsRequest(after_seq=numbers[-1] if numbers else 0))
            numbers += [each.seq for each in page.events]
            assert page.next_after_seq == numbers[-1]
            assert sum(each.ByteSize() for each in page.events) <= 2 * KIB
            more = page.more
        newest = await client.call(pb.ListEventsRequest(newest=True))
    assert numbers == list(range(1, 51))
    assert [each.seq for each in newest.events] == numbers[-len(newest.events) :]
    assert 0 < len(newest.events) < 50


async def test_a_stream_that_is_not_read_holds_one_response_and_no_event(place: Path) -> None:
    """As many resume from far behind, take their first batch, and then nothing."""
    async with filled(place) as stage:
        history, turns, frames = EventHistory(stage.feed, stage.ledger), FairQueue(), Frames(FACTS)
        position = StreamPosition(store_id=stage.ledger.store_id, seq=0)

        def stream() -> Subscription:
            return Subscription(
                feed=stage.feed,
                history=history,
                turns=turns,
                frames=frames,
                answers=Quota(ANSWER_BYTES),
                caller=ROOT,
                request=pb.WatchRequest(),
                position=position,
                pace=StreamPace(),
            )

        async with aclosing(stream().responses()) as first:
            batch = [await anext(first) for _ in range(2)][1]
        tracemalloc.start()
        try:
            streams = [stream().responses() for _ in range(STREAMS)]
            held = [[await anext(each) for _ in range(2)][1] for each in streams]
            each_bytes = tracemalloc.get_traced_memory()[0] / STREAMS
        finally:
            tracemalloc.stop()
        for one in streams:
            await one.aclose()
    assert len(pb.WatchResponse.FromString(batch).batch.events) == MAX_BATCH
    assert held == [batch] * STREAMS
    assert each_bytes < len(batch) + 10 * KIB


async def test_a_batch_has_so_many_bytes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_BATCH_BYTES", 2 * KIB)
    await stage.commit(*(event() for _ in range(30)))
    numbers: list[int] = []
    async with watching(stage.socket, after(stage.ledger.store_id, 0)) as stream:
        await stream.bookmark()
        while len(numbers) < 30:
            batch = await stream.batch()
            assert sum(each.ByteSize() for each in batch[:-1]) <= 2 * KIB
            numbers += [each.seq for each in batch]
    assert numbers == list(range(1, 31))
