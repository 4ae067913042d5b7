"""StopJob and RerunJob: an operator has a supervised job stop, and run again.

Whether that is possible is the core's to say; here it is put into the core's words, and the answer into the
caller's.
"""

from nodeagent.api import messages, request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.core.model import NODE, Operator
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Taken


async def stop_job(context: Context, caller: Caller, request: pb.StopJobRequest) -> Done:
    taken, order = await _ordered(context, caller, "stop_job", request)
    job = _shown(context, request.job)
    return Done(
        message=pb.StopJobResponse(node=context.node, job=job),
        result=f"asked to stop: {order.reason}",
        taken=taken,
    )


async def rerun_job(context: Context, caller: Caller, request: pb.RerunJobRequest) -> Done:
    taken, order = await _ordered(context, caller, "rerun_job", request)
    job = _shown(context, request.job)
    return Done(
        message=pb.RerunJobResponse(node=context.node, job=job),
        result=f"to run again: {order.reason}",
        taken=taken,
    )


async def _ordered(
    context: Context, caller: Caller, what: str, request: pb.StopJobRequest | pb.RerunJobRequest
) -> tuple[Taken, Operator]:
    order = Operator(
        who=caller.identity,
        what=what,
        device=NODE,
        only=request_fields.word("job", request.job),
        reason=request_fields.reason(request.reason),
    )
    _, taken = await context.order(order)
    return taken, order


def _shown(context: Context, name: str) -> types_pb2.Job | None:
    current = context.feed.current
    published = messages.Published(current)
    return next((messages.job(published, each) for each in current.view.jobs if each.name == name), None)
