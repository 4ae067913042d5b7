"""Inject: a fault for rehearsals. It goes to the core as a signal, under a source of its own."""

from typing import Final

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Context, Done
from nodeagent.api.request_fields import known_device
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import Assertion, DeviceView, Signal
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.store.records import Publication

INJECTED: Final = "inject"


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


def _injected_on(current: Publication, device: DeviceView, code: str) -> str:
    wanted = (device.id, canonical(code))
    for condition in current.view.conditions:
        if condition.injected and (condition.device_id, canonical(condition.code)) == wanted:
            return condition.id
    return ""
