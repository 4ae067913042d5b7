"""Quiesce and Resume: an operator holds off all actions on the node, and allows them again.

A quiesce is its owner's, as every hold of a person: another's resume ends it by its id or by force only.
"""

import time
from typing import Final

from nodeagent.core.model import NODE, EventKind, Hold, HoldKind, Operator
from nodeagent.outlets import holds, messages, request_fields
from nodeagent.outlets.credentials import Caller
from nodeagent.outlets.known import known_device
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.orders import Ask, Done
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board

_SECOND_NS: Final = 1_000_000_000
_LONGEST_NS: Final = 365 * 86_400 * _SECOND_NS


class Quiescing:
    def __init__(self, board: Board, facts: NodeFacts, ask: Ask) -> None:
        self._board = board
        self._node = messages.node_identity(facts)
        self._ask = ask

    async def quiesce(self, caller: Caller, request: pb.QuiesceRequest) -> Done:
        reason = request_fields.reason(request.reason)
        order = Operator(
            who=caller.identity,
            owner=request_fields.owner(request.owner, caller.identity),
            what="quiesce",
            device=self._node_id(),
            reason=reason,
            until_ns=self._until_ns(request),
        )
        taken = await self._ask(order)
        current = self._board.current
        hold = messages.Scene(current).hold(holds.made_by(current, order, HoldKind.QUIESCE))
        until = hold.until if hold.HasField("until") else None
        message = pb.QuiesceResponse(node=self._node, until=until, hold=hold)
        return Done(message=message, result=f"quiesced {holds.end_of(hold)}: {reason}", taken=taken)

    async def resume(self, caller: Caller, request: pb.ResumeRequest) -> Done:
        order = Operator(
            who=caller.identity,
            owner=request_fields.owner(request.owner, caller.identity),
            what="resume",
            device=self._node_id(),
            reason=request_fields.optional_reason(request.reason),
            only=request.id,
            force=request.force,
        )
        taken = await self._ask(order)
        ended = [event.condition_id for event in taken.events if event.kind is EventKind.RESUMED]
        others = self._quiesces()
        if not ended:
            raise Refusal(Status.FAILED_PRECONDITION, _nothing_to_resume(order, others))
        scene = messages.Scene(self._board.current)
        message = pb.ResumeResponse(
            node=self._node, others=[scene.hold(each) for each in others], resumed=ended
        )
        result = f"resumed{' by force' if request.force else ''} {', '.join(ended)}"
        result = f"{result}: {order.reason}" if order.reason else result
        return Done(message=message, result=result, taken=taken)

    def _quiesces(self) -> list[Hold]:
        return holds.on_device(self._board.current, self._node_id(), HoldKind.QUIESCE)

    def _node_id(self) -> str:
        return known_device(self._board.current, NODE).id

    def _until_ns(self, request: pb.QuiesceRequest) -> int | None:
        if not request.HasField("duration"):
            return None
        length_ns = request.duration.seconds * _SECOND_NS + request.duration.nanos
        if not _SECOND_NS <= length_ns <= _LONGEST_NS:
            told = f"duration: 1 s to 365 days, not {length_ns / 1e9:g} s"
            raise Refusal(Status.INVALID_ARGUMENT, told)
        return time.time_ns() - self._board.current.wall_offset_ns + length_ns


def _nothing_to_resume(order: Operator, others: list[Hold]) -> str:
    if not others:
        return "this node is not quiesced"
    if order.only:
        return f"id: {order.only!r} is no quiesce of this node; it is quiesced by {holds.named(others)}"
    return holds.not_yours("this node is quiesced", order.owner, others)
