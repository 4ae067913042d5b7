"""A quiesce is its owner's: what others are told who resume the node."""

from dataclasses import replace

import pytest

from nodeagent.core.model import EventKind, Hold, HoldKind, Input, View
from nodeagent.outlets.credentials import Caller, Role
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.quiescing import Quiescing
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board
from nodeagent.store.records import Publication, StoreId, Taken
from tests.outlets import samples
from tests.outlets.stage import FACTS

CALLER = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0 pid 7")
NODE_ID = samples.NODE_DEVICE.id
BOBS = f"quiesced by bob (driver upgrade), id {NODE_ID}/quiesce:bob#1"


def quiesced_by(*owners: str) -> Board:
    holds = tuple(
        Hold(
            id=f"{NODE_ID}/quiesce:{owner}#1",
            device_id=NODE_ID,
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


async def nothing_changes(*_inputs: Input) -> Taken:
    return Taken()


async def it_is_resumed(*_inputs: Input) -> Taken:
    resumed = samples.event(kind=EventKind.RESUMED)
    return Taken(events=(replace(resumed, condition_id=f"{NODE_ID}/quiesce:alice#1"),))


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (
            pb.ResumeRequest(owner="alice"),
            f"this node is {BOBS}; alice has no hold there: name its owner or its id, or use force",
        ),
        (
            pb.ResumeRequest(owner="alice", id="x"),
            f"id: 'x' is no quiesce of this node; it is {BOBS}",
        ),
    ],
)
async def test_who_has_quiesced_nothing_is_told_who_has(request_: pb.ResumeRequest, reason: str) -> None:
    service = Quiescing(quiesced_by("bob"), FACTS, nothing_changes)
    with pytest.raises(Refusal) as refused:
        await service.resume(CALLER, request_)
    assert refused.value.status is Status.FAILED_PRECONDITION
    assert refused.value.reason == reason


async def test_who_resumes_is_told_whose_quiesces_go_on() -> None:
    service = Quiescing(quiesced_by("bob"), FACTS, it_is_resumed)
    done = await service.resume(CALLER, pb.ResumeRequest(reason="done"))
    assert isinstance(done.message, pb.ResumeResponse)
    assert [(hold.owner, hold.reason) for hold in done.message.others] == [("bob", "driver upgrade")]
    assert list(done.message.resumed) == [f"{NODE_ID}/quiesce:alice#1"]
    assert done.result == f"resumed {NODE_ID}/quiesce:alice#1: done"


async def test_where_there_is_no_room_for_another_hold_that_is_said() -> None:
    service = Quiescing(quiesced_by(*(f"owner-{number}" for number in range(1024))), FACTS, nothing_changes)
    with pytest.raises(Refusal) as refused:
        await service.quiesce(CALLER, pb.QuiesceRequest(reason="bench", owner="alice"))
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    assert refused.value.reason == "there are 1024 holds already; release some first"


@pytest.mark.parametrize("owner", ["uid:0", "a b", "a/b", "a#1", "nodeagent", "x" * 65, "\n", " "])
async def test_a_name_that_nobody_may_have_is_refused(owner: str) -> None:
    service = Quiescing(quiesced_by(), FACTS, nothing_changes)
    with pytest.raises(Refusal) as refused:
        await service.quiesce(CALLER, pb.QuiesceRequest(reason="bench", owner=owner))
    assert refused.value.status is Status.INVALID_ARGUMENT
    assert refused.value.reason.startswith("owner: 1 to 64 printable characters without spaces")
