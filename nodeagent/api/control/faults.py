"""Faults that callers bring: injected ones for rehearsals, and public ones that other systems found.

It judges no fault: both go to the core as signals, under sources of their own.
"""

from typing import Final

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.named_devices import known_device
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.catalog.catalog import Catalog, canonical
from nodeagent.core.model import Assertion, DeviceView, Kind, Signal
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.store.records import Publication

INJECTED: Final = "inject"
PUBLIC: Final = "public"

_MOST_NAMED: Final = 20


async def inject(context: Context, caller: Caller, request: pb.InjectRequest) -> Done:
    device = known_device(context.feed.current, request.device)
    signal = Signal(
        source=INJECTED,
        device=device.id,
        code=request_fields.word("code", request.code),
        assertion=request_fields.assertion(request.assertion, where_not_set=Assertion.ONCE),
        evidence={**request_fields.evidence(request.evidence), "injected_by": caller.who},
        injected=True,
        affect_verdict=request.affect_verdict,
    )
    taken = await context.ask(signal)
    opened = next((event.condition_id for event in taken.events if event.condition_id), "")
    condition_id = opened or _injected_on(context.feed.current, device, signal.code)
    return Done(
        message=pb.InjectResponse(node=context.node, condition_id=condition_id),
        result=f"injected {signal.code} ({signal.assertion})",
    )


async def report_public_fault(
    context: Context, _caller: Caller, request: pb.ReportPublicFaultRequest
) -> Done:
    device = known_device(context.feed.current, request.device)
    evidence = request_fields.evidence(request.evidence)
    evidence["reporter"] = request_fields.word("reporter", request.reporter)
    if request.HasField("found_at"):
        evidence["found_at"] = request.found_at.ToJsonString()
    signal = Signal(
        source=PUBLIC,
        device=device.id,
        code=_public_code(context.catalog(), request.code),
        assertion=request_fields.assertion(request.assertion, where_not_set=None),
        evidence=evidence,
    )
    await context.ask(signal)
    return Done(
        message=pb.ReportPublicFaultResponse(node=context.node),
        result=f"{signal.code} ({signal.assertion}) by {request.reporter}",
    )


def _public_code(catalog: Catalog, code: str) -> str:
    """A code that nobody has described would isolate or hide at a reporter's whim."""
    row = catalog.row(request_fields.word("code", code))
    if row is None or row.kind is not Kind.PUBLIC:
        known = sorted(row.code for row in catalog.rows.values() if row.kind is Kind.PUBLIC)
        named = ", ".join(known[:_MOST_NAMED])
        problem = f"{code!r} has no row of kind public; there are {len(known)}, such as {named}"
        raise Refusal(Status.INVALID_ARGUMENT, f"code: {problem}")
    return code


def _injected_on(current: Publication, device: DeviceView, code: str) -> str:
    wanted = (device.id, canonical(code))
    for condition in current.view.conditions:
        if condition.injected and (condition.device_id, canonical(condition.code)) == wanted:
            return condition.id
    return ""
