"""ReportPublicFault: other systems report faults that they found on this node. It judges none of them."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.control.public import fields
from nodeagent.api.control.public.concerned import ThisNode
from nodeagent.api.control.public.senders import Senders, Word
from nodeagent.api.refusal import Refusal
from nodeagent.api.request_fields import DeviceNames
from nodeagent.core.model import Condition, PublicFaults, Reported
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb


async def report_public_fault(
    context: Context, senders: Senders, caller: Caller, request: pb.ReportPublicFaultRequest
) -> Done:
    try:
        word = senders.admit(request.sender, caller)
        async with senders.turn:
            # The largest message takes a third of a second: others have their turns meanwhile.
            faults = await asyncio.to_thread(_checked, context, senders, word, request)
            answer, taken = await context.order(faults)
    except Refusal as refusal:
        senders.refused(request.sender, refusal.status)
        raise
    senders.accepted(request.sender, answer.reported)
    results = [
        pb.PublicFaultResult(fault_id=fault.report.fault_id, outcome=enums.PUBLIC_FAULT_OUTCOMES[outcome])
        for fault, outcome in zip(faults.faults, answer.reported, strict=True)
    ]
    return Done(
        message=pb.ReportPublicFaultResponse(node=context.node, results=results),
        result=f"{request.id}: {_summary(answer.reported)}",
        taken=taken,
    )


def _checked(
    context: Context, senders: Senders, word: Word, request: pb.ReportPublicFaultRequest
) -> PublicFaults:
    now_ms = time.time_ns() // 1_000_000
    fields.check_message(request, now_ms)
    view = context.feed.current.view
    node = ThisNode(
        name=context.facts.node_name,
        serial=senders.config.node_serial,
        devices=DeviceNames(view.devices),
        catalog=context.catalog(),
        now_ms=now_ms,
        open=_opened_by(view.conditions),
    )
    return PublicFaults(
        faults=tuple(
            fields.fault(f"faults[{place}]", fault, word, node) for place, fault in enumerate(request.faults)
        )
    )


def _opened_by(conditions: Iterable[Condition]) -> Mapping[str, frozenset[str]]:
    """The identities of those who opened a reported fault, by its name."""
    openers: dict[str, set[str]] = {}
    for report in (each.report for each in conditions if each.report is not None):
        openers.setdefault(report.name, set()).add(report.by)
    return {name: frozenset(by) for name, by in openers.items()}


def _summary(outcomes: tuple[Reported, ...]) -> str:
    return ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in Counter(outcomes).items())
