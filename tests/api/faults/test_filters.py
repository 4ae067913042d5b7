"""Filters pass an event if the state before or after it matches."""

from pathlib import Path

from nodeagent.client import Event
from nodeagent.core.model import EventKind, Level
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api.samples import event
from tests.api.stage import IMPATIENT, Stage
from tests.api.watching import after, watching

LOWERED = event("gpu0", Level.SUB_HEALTH, EventKind.LEVEL_CHANGED, condition_level=Level.SUB_HEALTH)
STILL_LOW = event("gpu0", Level.SUB_HEALTH, EventKind.NOTICE, condition_level=Level.SUB_HEALTH)
SERIOUS = pb.EventFilter(minimum_level=types_pb2.LEVEL_PRE_SEPARATE_NPU)


async def test_the_event_with_which_a_device_leaves_the_minimum_level_is_told(stage: Stage) -> None:
    async with watching(stage.socket, pb.WatchRequest(filter=SERIOUS)) as stream:
        await stream.snapshot()
        await stage.commit(event("gpu0"), LOWERED, STILL_LOW, event("gpu1"))
        assert await stream.numbers(3) == [1, 2, 4]


async def test_the_state_before_the_first_event_is_that_of_the_snapshot(stage: Stage) -> None:
    await stage.commit(event("gpu0"))
    async with watching(stage.socket, pb.WatchRequest(filter=SERIOUS)) as stream:
        await stream.snapshot()
        await stage.commit(LOWERED, STILL_LOW)
        await stage.commit(event("gpu1"))
        assert await stream.numbers(2) == [2, 4]


async def test_after_a_resume_an_event_that_may_have_left_the_level_is_told(stage: Stage) -> None:
    await stage.commit(event("gpu0"), LOWERED, STILL_LOW, event("gpu1"))
    request = after(stage.ledger.store_id, 1)
    request.filter.CopyFrom(SERIOUS)
    async with watching(stage.socket, request) as stream:
        assert await stream.bookmark() == 1
        assert await stream.numbers(2) == [2, 4]


async def test_devices_are_named_or_given_by_their_id_and_the_snapshot_is_filtered_too(stage: Stage) -> None:
    await stage.commit(event("gpu0"), event("gpu1"), event("gpu2"))
    request = pb.WatchRequest(filter=pb.EventFilter(devices=["gpu0", "gpu1-id"]))
    async with watching(stage.socket, request) as stream:
        snapshot = await stream.snapshot()
        await stage.commit(event("gpu2"), event("gpu1"), event("gpu0"))
        assert [each.device for each in await stream.batch()] == ["gpu1", "gpu0"]
    assert [device.name for device in snapshot.devices] == ["gpu0", "gpu1"]
    assert [condition.device for condition in snapshot.conditions] == ["gpu0", "gpu1"]


async def test_only_the_kinds_asked_for_pass(stage: Stage) -> None:
    request = pb.WatchRequest(filter=pb.EventFilter(kinds=[types_pb2.EVENT_KIND_LEVEL_CHANGED]))
    async with watching(stage.socket, request) as stream:
        await stream.snapshot()
        await stage.commit(event(), LOWERED, STILL_LOW)
        assert await stream.numbers(1) == [2]


async def test_only_the_codes_and_families_asked_for_pass(stage: Stage) -> None:
    request = pb.WatchRequest(filter=pb.EventFilter(codes=["xid_63", "ECC_*", "0080E18005"[1:]]))
    codes = ("XID_63", "XID_79", "ECC_PAGES", "ECC", "XID_630", "80E18005", "")
    async with watching(stage.socket, request) as stream:
        await stream.snapshot()
        await stage.commit(*(event(code=code) for code in codes))
        assert [each.code for each in await stream.batch()] == ["XID_63", "ECC_PAGES", "80E18005"]


async def test_the_list_of_events_is_filtered_by_code_too(stage: Stage) -> None:
    await stage.commit(event(code="XID_63"), event(code="XID_79"), event(code="XID_63"))
    async with stage.client() as client:
        wanted = pb.EventFilter(codes=["XID_63"])
        oldest = await client.call(pb.ListEventsRequest(filter=wanted))
        newest = await client.call(pb.ListEventsRequest(filter=wanted, newest=True, limit=1))
    assert [each.seq for each in oldest.events] == [1, 3]
    assert [each.seq for each in newest.events] == [3]


async def test_the_client_library_asks_for_codes(stage: Stage) -> None:
    async with stage.client() as client:
        stream = client.watch(codes=["XID_63"])
        await anext(stream)
        await stage.commit(event(code="XID_79"), event(code="XID_63"))
        update = await anext(stream)
        await stream.aclose()
    assert isinstance(update, Event)
    assert update.code == "XID_63"


async def test_a_bookmark_tells_the_position_behind_events_that_were_held_back(place: Path) -> None:
    stage = Stage(place, pace=IMPATIENT)
    await stage.open()
    request = pb.WatchRequest(filter=pb.EventFilter(devices=["gpu9"]))
    async with watching(stage.socket, request) as stream:
        await stream.snapshot()
        await stage.commit(event("gpu0"), event("gpu1"))
        while (position := await stream.bookmark()) == 0:
            continue
        assert position == 2
    await stage.close()
