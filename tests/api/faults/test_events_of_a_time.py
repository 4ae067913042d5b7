"""ListEvents by time: what was in an hour, however the wall clock was set meanwhile."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api.faults import list_events
from nodeagent.client import ClientError
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.api.samples import SECOND_NS, event
from tests.api.stage import Stage

BEGUN_NS = 1_790_000_000 * SECOND_NS


def at(second: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromNanoseconds(BEGUN_NS + int(second * SECOND_NS))
    return stamp


async def commit_at(stage: Stage, *seconds: int) -> None:
    for second in seconds:
        await stage.commit(event(), wall_ns=BEGUN_NS + second * SECOND_NS)


async def listed(stage: Stage, **asked: Any) -> list[int]:
    """The numbers of all pages; ``limit`` is of one page."""
    numbers: list[int] = []
    request, more = pb.ListEventsRequest(**asked), True
    async with stage.client() as client:
        while more:
            page = await client.call(request)
            numbers += [each.seq for each in page.events]
            request.after_seq, more = page.next_after_seq, page.more
    return numbers


@pytest.fixture(autouse=True, params=["few reads", "many reads"])
def looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long history takes the store several reads: here every second number begins another one."""
    if request.param == "many reads":
        monkeypatch.setattr(list_events, "_LOOKED_AT", 2)


@pytest.fixture
async def six(stage: Stage) -> Stage:
    """Events at 10, 20, 30, 40, 50 and 60 s."""
    await commit_at(stage, 10, 20, 30, 40, 50, 60)
    return stage


async def test_events_are_listed_from_a_time_on_and_before_another(six: Stage) -> None:
    assert await listed(six, since=at(30)) == [3, 4, 5, 6]
    assert await listed(six, until=at(30)) == [1, 2]
    assert await listed(six, since=at(20), until=at(50)) == [2, 3, 4]
    assert await listed(six, since=at(30.5), until=at(39.5)) == []
    assert await listed(six, since=at(61)) == []
    assert await listed(six, until=at(10)) == []


async def test_a_time_is_asked_for_page_by_page_and_after_a_number(six: Stage) -> None:
    assert await listed(six, since=at(20), until=at(60), limit=1) == [2, 3, 4, 5]
    assert await listed(six, since=at(20), until=at(60), after_seq=3) == [4, 5]


async def test_where_a_time_ends_is_not_looked_for_again_with_each_page(
    six: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full store that is a read of all that came later."""
    looked: list[int] = []
    last_before = six.ledger.last_before

    async def counted(after_seq: int, until_seq: int, until_ns: int) -> int | None:
        looked.append(until_seq)
        return await last_before(after_seq, until_seq, until_ns)

    monkeypatch.setattr(six.ledger, "last_before", counted)
    assert await listed(six, until=at(40), limit=1) == [1, 2, 3]
    assert looked == []


async def test_the_newest_of_a_time_are_those_before_its_end(six: Stage) -> None:
    assert await listed(six, until=at(50), newest=True, limit=2) == [3, 4]
    assert await listed(six, since=at(40), newest=True, limit=5) == [4, 5, 6]


async def test_a_clock_that_was_set_back_hides_nothing(stage: Stage) -> None:
    await commit_at(stage, 100, 200, 50, 150, 250)
    assert await listed(stage, since=at(140)) == [2, 4, 5]
    assert await listed(stage, until=at(120)) == [1, 3]
    assert await listed(stage, since=at(120), until=at(210)) == [2, 4]


async def test_while_the_disk_fails_what_memory_has_is_found(stage: Stage) -> None:
    await commit_at(stage, 10, 20)
    stage.ledger._durability.leave("as a disk that fails")
    await commit_at(stage, 30, 40)
    assert await listed(stage, since=at(15)) == [2, 3, 4]
    assert await listed(stage, until=at(40)) == [1, 2, 3]
    assert await listed(stage, since=at(25), until=at(40), newest=True) == [3]


async def test_what_ends_before_it_begins_is_refused(six: Stage) -> None:
    async with six.client() as client:
        with pytest.raises(ClientError) as refused:
            await client.call(pb.ListEventsRequest(since=at(20), until=at(20)))
    assert (refused.value.status, refused.value.reason) == (
        "INVALID_ARGUMENT",
        "since: it must be before until",
    )


async def test_a_time_beyond_all_clocks_is_the_last_one(six: Stage) -> None:
    ten_thousand = Timestamp(seconds=253_402_300_799)
    before_all = Timestamp(seconds=-62_135_596_800)
    assert await listed(six, since=before_all, until=ten_thousand) == [1, 2, 3, 4, 5, 6]
