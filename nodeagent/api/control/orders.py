"""Orders of operators: a row each, from the request to the core's ``Operator``, and from its answer to the
response.

Whether an order is possible the core decides; its reasons are passed on. A dry run of a reset and an injected
fault are not ``Operator`` inputs, so they have functions of their own.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api import messages, request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import CallResult, Context
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import known_device
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.machines.reset_refusal import DryRun
from nodeagent.core.model import NODE, Answer, Assertion, DeviceView, HoldKind, Operator, Signal
from nodeagent.messages import mapping
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Publication

INJECTED: Final = "inject"
"""The source of injected faults."""

_SECOND_NS: Final = 1_000_000_000
_LONGEST_NS: Final = 365 * 86_400 * _SECOND_NS


class Executed(NamedTuple):
    """An order that the core has taken."""

    context: Context
    request: Any
    order: Operator
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMethod:
    """How one method of ControlService becomes an order.

    ``what`` is the core's name of the order, or gives it. ``device`` gives the id that the order is about.
    ``fields`` gives further fields of the ``Operator``. ``response`` is made of what ``shown`` gives, by the
    names of its fields. ``result`` is for the audit log; it may have {ids}, {forced}, {decided} and {end}.
    """

    what: str | Callable[[Any], str]
    device: Callable[[Context, Any], str]
    needs_reason: bool = True
    check: Callable[[Context, Any], None] = lambda _context, _request: None
    """Raises ``Refusal``."""
    fields: Callable[[Context, Any], Mapping[str, Any]] = lambda _context, _request: {}
    response: type[Message]
    shown: Mapping[str, Callable[[Executed], Any]]
    result: str


async def execute(method: OrderMethod, context: Context, caller: Caller, request: Any) -> CallResult:
    """Raises ``Refusal``."""
    sent = request.DESCRIPTOR.fields_by_name
    device = method.device(context, request)
    owner = request_fields.owner(request.owner, caller.identity) if "owner" in sent else ""
    check_reason = request_fields.reason if method.needs_reason else request_fields.optional_reason
    reason = check_reason(request.reason)
    method.check(context, request)
    order = Operator(
        who=caller.identity,
        owner=owner,
        what=method.what if isinstance(method.what, str) else method.what(request),
        device=device,
        reason=reason,
        force="force" in sent and request.force,
        **method.fields(context, request),
    )
    answer, taken = await context.order(order)
    executed = Executed(context, request, order, answer)
    response = method.response(
        node=context.node,
        **{name: show(executed) for name, show in method.shown.items()},
    )
    result = method.result.format(
        ids=", ".join(answer.ids),
        forced=" by force" if order.force else "",
        decided="approved" if order.what == "approve" else "refused",
        end=_end_of(getattr(response, "hold", types_pb2.Hold())),
    )
    return CallResult(message=response, result=f"{result}: {reason}" if reason else result, taken=taken)


# --- the devices ---


def _named_device(context: Context, request: Any) -> str:
    return known_device(context.feed.current, request.device).id


def _this_node(context: Context, _request: Any) -> str:
    return known_device(context.feed.current, NODE).id


# --- holds ---


def _hold(done: Executed) -> types_pb2.Hold:
    """The hold that an order made or found. Raises ``Refusal`` where it has ended already."""
    current = done.context.feed.current
    hold = next((hold for hold in current.view.holds if hold.id in done.answer.ids), None)
    if hold is None:
        raise Refusal(Status.FAILED_PRECONDITION, "the hold has ended already")
    return messages.Published(current).hold(hold)


def _until(done: Executed) -> Timestamp | None:
    hold = _hold(done)
    return hold.until if hold.HasField("until") else None


def _other_holds(kind: HoldKind) -> Callable[[Executed], list[types_pb2.Hold]]:
    """The holds of this kind that stay on the device."""

    def shown(done: Executed) -> list[types_pb2.Hold]:
        current = done.context.feed.current
        published = messages.Published(current)
        holds = (each for each in current.view.holds if each.device_id == done.order.device)
        return [published.hold(hold) for hold in holds if hold.kind is kind]

    return shown


def _end_of(hold: types_pb2.Hold) -> str:
    if hold.HasField("until"):
        return f"until {hold.until.ToJsonString()}"
    return "until resumed" if hold.kind == types_pb2.HOLD_KIND_QUIESCE else "until released"


def _end_of_isolation(context: Context, request: pb.IsolateDeviceRequest) -> Mapping[str, int | None]:
    if not request.HasField("until"):
        return {"until_ns": None}
    current = context.feed.current
    until_ns = mapping.wall_ns(request.until) - current.wall_offset_ns
    if until_ns <= current.view.now_ns:
        given = request.until.ToJsonString()
        raise Refusal(Status.INVALID_ARGUMENT, f"until: {given} is not in the future")
    return {"until_ns": until_ns}


def _end_of_quiesce(context: Context, request: pb.QuiesceRequest) -> Mapping[str, int | None]:
    if not request.HasField("duration"):
        return {"until_ns": None}
    length_ns = request.duration.seconds * _SECOND_NS + request.duration.nanos
    if not _SECOND_NS <= length_ns <= _LONGEST_NS:
        problem = f"duration: 1 s to 365 days, not {length_ns / 1e9:g} s"
        raise Refusal(Status.INVALID_ARGUMENT, problem)
    return {"until_ns": time.time_ns() - context.feed.current.wall_offset_ns + length_ns}


# --- resets ---


def _check_possible(context: Context, request: pb.ApproveActionRequest) -> None:
    if request.approved and (why := context.cannot_reset()):
        raise Refusal(Status.FAILED_PRECONDITION, why)


def _reset(done: Executed) -> types_pb2.Reset | None:
    """None where it has ended and is no longer kept."""
    (action_id,) = done.answer.ids
    published = messages.Published(done.context.feed.current)
    found = (each for each in published.publication.view.resets if each.id == action_id)
    return next((messages.reset(published, each) for each in found), None)


async def reset_device(context: Context, caller: Caller, request: pb.ResetDeviceRequest) -> CallResult:
    device = known_device(context.feed.current, request.device)
    reason = request_fields.reason(request.reason) if not request.dry_run else ""
    dry_run = _dry_run_of(context, device, request.once)
    message = pb.ResetDeviceResponse(node=context.node, devices=dry_run.devices, plan=messages.plan(dry_run))
    if request.dry_run:
        return CallResult(message=message, result=dry_run.refused or "it would be proposed")
    if dry_run.refused:
        raise Refusal(Status.FAILED_PRECONDITION, dry_run.refused)
    order = Operator(who=caller.identity, what="reset", device=device.id, reason=reason, once=request.once)
    answer, taken = await context.order(order)
    (message.action_id,) = answer.ids
    message.MergeFrom(pb.ResetDeviceResponse(reset=_reset(Executed(context, request, order, answer))))
    mode = f"{dry_run.mode}, once" if dry_run.once else dry_run.mode
    return CallResult(message=message, result=f"proposed {message.action_id} ({mode}): {reason}", taken=taken)


def _dry_run_of(context: Context, device: DeviceView, once: bool) -> DryRun:
    dry_run = context.dry_run_reset(device.id, once)
    if dry_run is None:
        raise Refusal(Status.NOT_FOUND, f"device: {device.name} is no longer there")
    if refused := context.with_file(dry_run.refused, dry_run.setting) or context.cannot_reset():
        return replace(dry_run, refused=refused, steps=())
    return dry_run


# --- jobs ---


def _job(done: Executed) -> types_pb2.Job | None:
    published = messages.Published(done.context.feed.current)
    jobs = (each for each in published.publication.view.jobs if each.name == done.order.only)
    return next((messages.job(published, each) for each in jobs), None)


def _named_job(_context: Context, request: pb.StopJobRequest | pb.RerunJobRequest) -> Mapping[str, str]:
    return {"only": request_fields.word("job", request.job)}


# --- injected faults ---


async def inject(context: Context, caller: Caller, request: pb.InjectRequest) -> CallResult:
    """A fault for rehearsals. It goes to the core as a signal, under a source of its own."""
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
    return CallResult(
        message=pb.InjectResponse(node=context.node, condition_id=condition_id),
        result=f"injected {signal.code} ({signal.assertion})",
    )


def _injected_on(current: Publication, device: DeviceView, code: str) -> str:
    wanted = (device.id, canonical(code))
    for condition in current.view.conditions:
        if condition.origin.injected and (condition.device_id, canonical(condition.code)) == wanted:
            return condition.id
    return ""


# --- the table ---


def _ids(done: Executed) -> tuple[str, ...]:
    return done.answer.ids


def _device_id(done: Executed) -> str:
    return done.order.device


METHODS: Final[Mapping[str, OrderMethod]] = {
    "IsolateDevice": OrderMethod(
        what="isolate",
        device=_named_device,
        fields=_end_of_isolation,
        response=pb.IsolateDeviceResponse,
        shown={"hold": _hold},
        result="isolated {end}",
    ),
    "ReleaseDevice": OrderMethod(
        what="release",
        device=_named_device,
        fields=lambda _context, request: {"only": request.id, "only_if_well": not request.force},
        response=pb.ReleaseDeviceResponse,
        shown={"released": _ids, "others": _other_holds(HoldKind.ISOLATION)},
        result="released{forced} {ids}",
    ),
    "Quiesce": OrderMethod(
        what="quiesce",
        device=_this_node,
        fields=_end_of_quiesce,
        response=pb.QuiesceResponse,
        shown={"hold": _hold, "until": _until},
        result="quiesced {end}",
    ),
    "Resume": OrderMethod(
        what="resume",
        device=_this_node,
        needs_reason=False,
        fields=lambda _context, request: {"only": request.id},
        response=pb.ResumeResponse,
        shown={"resumed": _ids, "others": _other_holds(HoldKind.QUIESCE)},
        result="resumed{forced} {ids}",
    ),
    "ApproveAction": OrderMethod(
        what=lambda request: "approve" if request.approved else "refuse",
        device=lambda _context, request: request.action_id,
        needs_reason=False,
        check=_check_possible,
        response=pb.ApproveActionResponse,
        shown={"reset": _reset},
        result="{decided} {ids}",
    ),
    "ForgetDevice": OrderMethod(
        what="forget",
        device=_named_device,
        response=pb.ForgetDeviceResponse,
        shown={"device_id": _device_id},
        result="forgotten{forced}",
    ),
    "RebaselineDevice": OrderMethod(
        what="rebaseline",
        device=_named_device,
        response=pb.RebaselineDeviceResponse,
        shown={"device_id": _device_id},
        result="present state accepted as healthy",
    ),
    "StopJob": OrderMethod(
        what="stop_job",
        device=lambda _context, _request: NODE,
        fields=_named_job,
        response=pb.StopJobResponse,
        shown={"job": _job},
        result="asked to stop",
    ),
    "RerunJob": OrderMethod(
        what="rerun_job",
        device=lambda _context, _request: NODE,
        fields=_named_job,
        response=pb.RerunJobResponse,
        shown={"job": _job},
        result="to run again",
    ),
}
