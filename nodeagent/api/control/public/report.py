"""ReportPublicFault: other systems report faults that they found on this node. It judges none of them."""

import asyncio
from collections import Counter

from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.control.public import fields
from nodeagent.api.control.public.senders import Senders
from nodeagent.api.refusal import Refusal
from nodeagent.core.model import PublicFaults, Reported
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb


async def report_public_fault(
    context: Context, senders: Senders, caller: Caller, request: pb.ReportPublicFaultRequest
) -> Done:
    try:
        senders.admit(request.sender, caller)
        async with senders.turn:
            # The largest message takes a third of a second: others have their turns meanwhile.
            faults = await asyncio.to_thread(_checked, context, senders, request)
            answer, taken = await context.order(faults)
    except Refusal as refusal:
        senders.refused(request.sender, refusal.status)
        raise
    senders.accepted(request.sender, answer.reported)
    results = [
        pb.PublicFaultResult(fault_id=fault.fault_id, outcome=enums.PUBLIC_FAULT_OUTCOMES[outcome])
        for fault, outcome in zip(request.faults, answer.reported, strict=True)
    ]
    return Done(
        message=pb.ReportPublicFaultResponse(node=context.node, results=results),
        result=f"{request.id}: {_summary(answer.reported)}",
        taken=taken,
    )


def _checked(context: Context, senders: Senders, request: pb.ReportPublicFaultRequest) -> PublicFaults:
    fields.check_message(request)
    node = fields.ThisNode(
        name=context.facts.node_name,
        serial=senders.config.node_serial,
        devices={device.name: device for device in context.feed.current.view.devices},
        catalog=context.catalog(),
    )
    return PublicFaults(
        faults=tuple(
            fields.fault(f"faults[{place}]", fault, request.sender, node)
            for place, fault in enumerate(request.faults)
        )
    )


def _summary(outcomes: tuple[Reported, ...]) -> str:
    return ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in Counter(outcomes).items())
