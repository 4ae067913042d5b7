"""RebaselineDevice: an operator says that a device is right as it is now. The core says if that is taken."""

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.request_fields import known_device
from nodeagent.core.model import Operator
from nodeagent.messages.pb import control_service_pb2 as pb


async def rebaseline_device(context: Context, caller: Caller, request: pb.RebaselineDeviceRequest) -> Done:
    device = known_device(context.feed.current, request.device)
    order = Operator(
        who=caller.identity,
        owner=request_fields.owner(request.owner, caller.identity),
        what="rebaseline",
        device=device.id,
        reason=request_fields.reason(request.reason),
    )
    _, taken = await context.order(order)
    return Done(
        message=pb.RebaselineDeviceResponse(node=context.node, device_id=device.id),
        result=f"taken for well as it is: {order.reason}",
        taken=taken,
    )
