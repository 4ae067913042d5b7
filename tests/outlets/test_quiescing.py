"""A quiesce is its owner's: what others are told who resume the node."""

import pytest

from nodeagent.core.model import Event, EventKind, Hold, HoldKind, Input, View
from nodeagent.outlets.credentials import Caller, Role
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.quiescing import Quiescing
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board
from nodeagent.store.records import Publication, StoreId
from tests.outlets import samples
from tests.outlets.stage import FACTS

CALLER = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0 pid 7")


def quiesced_by(*owners: str) -> Board:
    holds = tuple(
        Hold(
            id=f"node-id/quiesce:{owner}",
            device_id="node-id",
            owner=owner,
            reason="driver upgrade",
            since_ns=1,
            kind=HoldKind.QUIESCE,
        )
        for owner in owners
    )
    board = Board()
    board.publish(
        Publication(
            view=View(devices=(samples.NODE_DEVICE,), holds=holds),
            store_id=StoreId(uuid="s", epoch=1),
            seq=1,
            durable=True,
            wall_offset_ns=0,
        )
    )
    return board


async def nothing_changes(*_inputs: Input) -> tuple[Event, ...]:
    return ()


async def it_is_resumed(*_inputs: Input) -> tuple[Event, ...]:
    return (samples.event(kind=EventKind.RESUMED),)


async def test_who_has_quiesced_nothing_is_told_who_has() -> None:
    service = Quiescing(quiesced_by("uid:1000"), FACTS, nothing_changes)
    with pytest.raises(Refusal) as refused:
        await service.resume(CALLER, pb.ResumeRequest())
    assert refused.value.status is Status.FAILED_PRECONDITION
    assert refused.value.reason == (
        "this node is quiesced by uid:1000 (driver upgrade); only its owner resumes it"
    )


async def test_who_resumes_is_told_whose_quiesces_go_on() -> None:
    service = Quiescing(quiesced_by("uid:0", "uid:1000"), FACTS, it_is_resumed)
    done = await service.resume(CALLER, pb.ResumeRequest(reason="done"))
    assert isinstance(done.message, pb.ResumeResponse)
    assert [(hold.owner, hold.reason) for hold in done.message.others] == [("uid:1000", "driver upgrade")]
    assert done.result == "resumed: done"


async def test_where_there_is_no_room_for_another_hold_that_is_said() -> None:
    service = Quiescing(quiesced_by("uid:1000"), FACTS, nothing_changes)
    with pytest.raises(Refusal) as refused:
        await service.quiesce(CALLER, pb.QuiesceRequest(reason="bench"))
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
