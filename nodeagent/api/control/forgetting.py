"""ForgetDevice: an operator says that a part was taken out for good. The core says whether that is taken."""

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.request_fields import known_device
from nodeagent.core.model import Operator
from nodeagent.messages.pb import control_service_pb2 as pb


async def forget_device(context: Context, caller: Caller, request: pb.ForgetDeviceRequest) -> Done:
    device = known_device(context.feed.current, request.device)
    order = Operator(
        who=caller.identity,
        owner=request_fields.owner(request.owner, caller.identity),
        what="forget",
        device=device.id,
        reason=request_fields.reason(request.reason),
        force=request.force,
    )
    _, taken = await context.order(order)
    forced = " by force" if request.force else ""
    return Done(
        message=pb.ForgetDeviceResponse(node=context.node, device_id=device.id),
        result=f"forgotten{forced}: {order.reason}",
        taken=taken,
    )
