"""Quiesce and Resume: an operator holds off all actions on the node, and allows them again.

A quiesce belongs to who ordered it; nobody else's resume ends it.
"""

import time
from typing import Final

from nodeagent.core.model import Hold, HoldKind, Operator
from nodeagent.outlets import messages, request_fields
from nodeagent.outlets.credentials import Caller
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.orders import Ask, Done
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board

_SECOND_NS: Final = 1_000_000_000
_LONGEST_NS: Final = 365 * 86_400 * _SECOND_NS
_NODE: Final = "node"


class Quiescing:
    def __init__(self, board: Board, facts: NodeFacts, ask: Ask) -> None:
        self._board = board
        self._node = messages.node_identity(facts)
        self._ask = ask

    async def quiesce(self, caller: Caller, request: pb.QuiesceRequest) -> Done:
        reason = request_fields.reason(request.reason)
        order = Operator(
            who=caller.identity,
            what="quiesce",
            device=_NODE,
            reason=reason,
            until_ns=self._until_ns(request),
        )
        await self._ask(order)
        hold = next((each for each in self._holds() if each.owner == caller.identity), None)
        if hold is None:
            raise Refusal(Status.RESOURCE_EXHAUSTED, "there are too many holds; release some")
        told = messages.Scene(self._board.current).hold(hold)
        message = pb.QuiesceResponse(
            node=self._node, until=told.until if told.HasField("until") else None, hold=told
        )
        end = f"until {told.until.ToJsonString()}" if told.HasField("until") else "until resumed"
        return Done(message=message, result=f"quiesced {end}: {reason}")

    async def resume(self, caller: Caller, request: pb.ResumeRequest) -> Done:
        reason = request_fields.optional_reason(request.reason)
        others = [each for each in self._holds() if each.owner != caller.identity]
        events = await self._ask(Operator(who=caller.identity, what="resume", device=_NODE, reason=reason))
        if not events:
            raise Refusal(Status.FAILED_PRECONDITION, _nothing_to_resume(others))
        scene = messages.Scene(self._board.current)
        message = pb.ResumeResponse(node=self._node, others=[scene.hold(each) for each in others])
        return Done(message=message, result=f"resumed: {reason}" if reason else "resumed")

    def _holds(self) -> list[Hold]:
        holds = self._board.current.view.holds
        return [each for each in holds if each.kind is HoldKind.QUIESCE]

    def _until_ns(self, request: pb.QuiesceRequest) -> int | None:
        if not request.HasField("duration"):
            return None
        length_ns = request.duration.seconds * _SECOND_NS + request.duration.nanos
        if not _SECOND_NS <= length_ns <= _LONGEST_NS:
            told = f"duration: 1 s to 365 days, not {length_ns / 1e9:g} s"
            raise Refusal(Status.INVALID_ARGUMENT, told)
        return time.time_ns() - self._board.current.wall_offset_ns + length_ns


def _nothing_to_resume(others: list[Hold]) -> str:
    if not others:
        return "this node is not quiesced"
    owners = ", ".join(f"{hold.owner} ({hold.reason})" for hold in others)
    return f"this node is quiesced by {owners}; only its owner resumes it"
