"""IsolateDevice and ReleaseDevice: an operator takes a device out of service, and gives it back.

Whether an order is taken is the core's to say; here it is put into the core's words, and the answer into the
caller's.
"""

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control import holds
from nodeagent.api.control.context import Context, Done
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import known_device
from nodeagent.core.model import HoldKind, Operator
from nodeagent.messages import mapping
from nodeagent.messages.pb import control_service_pb2 as pb


async def isolate_device(context: Context, caller: Caller, request: pb.IsolateDeviceRequest) -> Done:
    device = known_device(context.feed.current, request.device)
    order = Operator(
        who=caller.identity,
        owner=request_fields.owner(request.owner, caller.identity),
        what="isolate",
        device=device.id,
        reason=request_fields.reason(request.reason),
        until_ns=_until_ns(context, request),
    )
    answer, taken = await context.order(order)
    hold = holds.shown(context.feed.current, answer)
    return Done(
        message=pb.IsolateDeviceResponse(node=context.node, hold=hold),
        result=f"isolated {holds.end_of(hold)}: {order.reason}",
        taken=taken,
    )


async def release_device(context: Context, caller: Caller, request: pb.ReleaseDeviceRequest) -> Done:
    device = known_device(context.feed.current, request.device)
    order = Operator(
        who=caller.identity,
        owner=request_fields.owner(request.owner, caller.identity),
        what="release",
        device=device.id,
        reason=request_fields.reason(request.reason),
        only=request.id,
        force=request.force,
        only_if_well=not request.force,
    )
    answer, taken = await context.order(order)
    others = holds.on_device(context.feed.current, device.id, HoldKind.ISOLATION)
    forced = " by force" if request.force else ""
    return Done(
        message=pb.ReleaseDeviceResponse(node=context.node, released=answer.ids, others=others),
        result=f"released{forced} {', '.join(answer.ids)}: {order.reason}",
        taken=taken,
    )


def _until_ns(context: Context, request: pb.IsolateDeviceRequest) -> int | None:
    if not request.HasField("until"):
        return None
    current = context.feed.current
    until_ns = mapping.wall_ns(request.until) - current.wall_offset_ns
    if until_ns <= current.view.now_ns:
        given = request.until.ToJsonString()
        raise Refusal(Status.INVALID_ARGUMENT, f"until: {given} is not in the future")
    return until_ns
