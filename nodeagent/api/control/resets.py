"""ResetDevice and ApproveAction: an operator asks for a reset, and approves or refuses what is proposed.

Whether a reset may be done is the core's to say, and its words are passed on.
"""

from dataclasses import replace

from nodeagent.api import messages, request_fields, reset_messages
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.named_devices import known_device
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.machines.reset_refusal import DryRun
from nodeagent.core.model import Operator
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


async def reset_device(context: Context, caller: Caller, request: pb.ResetDeviceRequest) -> Done:
    device = known_device(context.feed.current, request.device)
    reason = request_fields.reason(request.reason) if not request.dry_run else ""
    dry_run = _dry_run_of(context, device.id, device.name, request.once)
    message = pb.ResetDeviceResponse(
        node=context.node,
        devices=dry_run.devices,
        plan=reset_messages.plan(dry_run),
    )
    if request.dry_run:
        return Done(message=message, result=dry_run.refused or "it would be proposed")
    if dry_run.refused:
        raise Refusal(Status.FAILED_PRECONDITION, dry_run.refused)
    order = Operator(who=caller.identity, what="reset", device=device.id, reason=reason, once=request.once)
    answer, taken = await context.order(order)
    (message.action_id,) = answer.ids
    message.MergeFrom(pb.ResetDeviceResponse(reset=_shown(context, message.action_id)))
    mode = f"{dry_run.mode}, once" if dry_run.once else dry_run.mode
    result = f"proposed {message.action_id} ({mode}): {reason}"
    return Done(message=message, result=result, taken=taken)


async def approve_action(context: Context, caller: Caller, request: pb.ApproveActionRequest) -> Done:
    reason = request_fields.optional_reason(request.reason)
    if request.approved and (why := context.cannot_reset()):
        raise Refusal(Status.FAILED_PRECONDITION, why)
    what = "approve" if request.approved else "refuse"
    order = Operator(who=caller.identity, what=what, device=request.action_id, reason=reason)
    answer, taken = await context.order(order)
    (action_id,) = answer.ids
    message = pb.ApproveActionResponse(node=context.node, reset=_shown(context, action_id))
    decided = f"{'approved' if request.approved else 'refused'} {action_id}"
    result = f"{decided}: {reason}" if reason else decided
    return Done(message=message, result=result, taken=taken)


def _dry_run_of(context: Context, device_id: str, name: str, once: bool) -> DryRun:
    dry_run = context.dry_run_reset(device_id, once)
    if dry_run is None:
        raise Refusal(Status.NOT_FOUND, f"device: {name} is no longer there")
    if refused := context.with_file(dry_run.refused, dry_run.setting) or context.cannot_reset():
        return replace(dry_run, refused=refused, steps=())
    return dry_run


def _shown(context: Context, action_id: str) -> types_pb2.Reset | None:
    """None where it has ended and is no longer kept."""
    published = messages.Published(context.feed.current)
    found = (each for each in published.publication.view.resets if each.id == action_id)
    return next((reset_messages.reset(published, each) for each in found), None)
