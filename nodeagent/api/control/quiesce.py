"""Quiesce and Resume: an operator holds off all actions on the node, and allows them again.

A quiesce is its owner's, as every hold of a person: another's resume ends it by its id or by force only.
"""

import time
from typing import Final

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control import holds
from nodeagent.api.control.context import Context, Done
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import known_device
from nodeagent.core.model import NODE, HoldKind, Operator
from nodeagent.messages.pb import control_service_pb2 as pb

_SECOND_NS: Final = 1_000_000_000
_LONGEST_NS: Final = 365 * 86_400 * _SECOND_NS


async def quiesce(context: Context, caller: Caller, request: pb.QuiesceRequest) -> Done:
    order = Operator(
        who=caller.identity,
        owner=request_fields.owner(request.owner, caller.identity),
        what="quiesce",
        device=_node_id(context),
        reason=request_fields.reason(request.reason),
        until_ns=_until_ns(context, request),
    )
    answer, taken = await context.order(order)
    hold = holds.shown(context.feed.current, answer)
    until = hold.until if hold.HasField("until") else None
    message = pb.QuiesceResponse(node=context.node, until=until, hold=hold)
    return Done(message=message, result=f"quiesced {holds.end_of(hold)}: {order.reason}", taken=taken)


async def resume(context: Context, caller: Caller, request: pb.ResumeRequest) -> Done:
    order = Operator(
        who=caller.identity,
        owner=request_fields.owner(request.owner, caller.identity),
        what="resume",
        device=_node_id(context),
        reason=request_fields.optional_reason(request.reason),
        only=request.id,
        force=request.force,
    )
    answer, taken = await context.order(order)
    others = holds.on_device(context.feed.current, order.device, HoldKind.QUIESCE)
    result = f"resumed{' by force' if request.force else ''} {', '.join(answer.ids)}"
    return Done(
        message=pb.ResumeResponse(node=context.node, others=others, resumed=answer.ids),
        result=f"{result}: {order.reason}" if order.reason else result,
        taken=taken,
    )


def _node_id(context: Context) -> str:
    return known_device(context.feed.current, NODE).id


def _until_ns(context: Context, request: pb.QuiesceRequest) -> int | None:
    if not request.HasField("duration"):
        return None
    length_ns = request.duration.seconds * _SECOND_NS + request.duration.nanos
    if not _SECOND_NS <= length_ns <= _LONGEST_NS:
        problem = f"duration: 1 s to 365 days, not {length_ns / 1e9:g} s"
        raise Refusal(Status.INVALID_ARGUMENT, problem)
    return time.time_ns() - context.feed.current.wall_offset_ns + length_ns
