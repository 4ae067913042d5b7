"""ReportPublicFault: faults that other systems found on this node. Each field is checked; no fault is judged.

A refusal names the path of the field. The limits are MindCluster's:
component/clusterd/pkg/application/publicfault/checker.go.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control import reportable
from nodeagent.api.control.context import CallResult, Context
from nodeagent.api.control.reportable import ReportedDevice, ThisNode
from nodeagent.api.control.senders import Reporter, Senders
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import DeviceNames
from nodeagent.core.faults.reported import FAULT_ID, MAX_AHEAD_NS, SENDER
from nodeagent.core.model import NODE, Assertion, Condition, PublicFault, PublicFaults, Report, Reported
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb

VERSION: Final = "1.0"
MAX_FAULTS: Final = 100
MAX_LOCATION: Final = 10
MAX_LOCATION_KEY: Final = 16
MAX_LOCATION_VALUE: Final = 128
MAX_INFLUENCE: Final = 1000
MAX_DESCRIPTION: Final = 512
_MAX_AHEAD_MS: Final = MAX_AHEAD_NS // 1_000_000

_ID: Final = re.compile(r"[a-zA-Z0-9\-_.]{8,128}")
_EARLIEST_MS: Final = 1_735_689_600_000
"""2025-01-01T00:00:00Z."""
_LATEST_MS: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z."""


def check_message(request: pb.ReportPublicFaultRequest, now_ms: int) -> None:
    """All but the sender and the faults."""
    _id("id", request.id)
    _milliseconds("sent_at", request, "sent_at", now_ms)
    if request.version != VERSION:
        raise _wrong("version", f"{request.version[:40]!r} is not {VERSION!r}")
    if not 0 < len(request.faults) <= MAX_FAULTS:
        raise _wrong("faults", f"1 to {MAX_FAULTS} are needed, not {len(request.faults)}")


def checked_fault(path: str, given: pb.PublicFault, reporter: Reporter, node: ThisNode) -> PublicFault:
    """The core's value for one fault, which has one of the two forms of the interface. Raises ``Refusal``."""
    is_named = any(each.devices for each in given.influence)
    fault_type = _fault_type(f"{path}.fault_type", given.fault_type, may_lack=is_named)
    is_now = is_named and not given.HasField("began_at")
    began_ms = node.now_ms if is_now else _milliseconds(f"{path}.began_at", given, "began_at", node.now_ms)
    assertion = _assertion(path, given)
    fault_id = "" if is_named and not given.fault_id else _id(f"{path}.fault_id", given.fault_id)
    influence = _influence(path, given, node)
    devices: Sequence[ReportedDevice] = ()
    is_over = assertion is Assertion.RECOVER and _is_open(fault_id, reporter, node)
    if not is_over:
        devices = [
            each for at, one in influence.items() for each in reportable.reported_devices(at, one, node)
        ]
    if not fault_id:
        fault_id = _made_id(f"{path}.fault_id", reportable.in_ids(given.code, node.catalog), devices)
        is_over = assertion is Assertion.RECOVER and _is_open(fault_id, reporter, node)
    # A fault that is over is over on all devices, whatever the present tables have for its code.
    check = (
        reportable.well_formed if is_over else reportable.fitting if is_named else reportable.of_mindcluster
    )
    code = check(f"{path}.code", given.code, node.catalog, devices)
    if assertion is Assertion.RECOVER:
        _check_owner(f"{path}.fault_id", fault_id, reporter, node)
    evidence = {SENDER: reporter.sender, FAULT_ID: fault_id, "began_at": _shown(began_ms)}
    if fault_type:
        evidence["fault_type"] = fault_type
    return PublicFault(
        report=Report(sender=reporter.sender, fault_id=fault_id, began_ms=began_ms, by=reporter.by),
        code=code,
        assertion=assertion,
        devices=tuple(dict.fromkeys(device.id for device in devices)),
        evidence=evidence | _texts(path, given),
        is_now=is_now,
        ends_all=reporter.ends_all,
    )


def _wrong(field: str, problem: str) -> Refusal:
    return Refusal(Status.INVALID_ARGUMENT, f"{field}: {problem}")


def _id(field: str, text: str) -> str:
    if not _ID.fullmatch(text):
        raise _wrong(field, f'8 to 128 letters, digits, "-", "_" and "." are needed, not {text[:40]!r}')
    return text


def _milliseconds(
    field: str, message: "pb.ReportPublicFaultRequest | pb.PublicFault", name: str, now_ms: int
) -> int:
    stamp: Timestamp = getattr(message, name)
    if not message.HasField(name):
        raise _wrong(field, "missing; a time from 2025 on is needed")
    milliseconds = stamp.seconds * 1000 + stamp.nanos // 1_000_000
    if not 0 <= stamp.nanos < 1_000_000_000 or milliseconds < _EARLIEST_MS:
        raise _wrong(field, f"{stamp.seconds} s after 1970 is not a time from 2025 on")
    if milliseconds > now_ms + _MAX_AHEAD_MS:
        ahead = f"{(milliseconds - now_ms) // 1000} s later than this node's clock, {_shown(now_ms)}"
        allowed = f"at most {_MAX_AHEAD_MS // 1000} s are taken: set the sender's clock, or this node's"
        raise _wrong(field, f"{_time_of(milliseconds)} is {ahead}; {allowed}")
    return milliseconds


def _shown(milliseconds: int) -> str:
    stamp = Timestamp()
    stamp.FromMilliseconds(milliseconds)
    return stamp.ToJsonString()


def _time_of(milliseconds: int) -> str:
    """A time that may be later than any calendar's."""
    return _shown(milliseconds) if milliseconds <= _LATEST_MS else f"{milliseconds // 1000} s after 1970"


def _fault_type(field: str, number: int, *, may_lack: bool) -> str:
    if may_lack and number == pb.PUBLIC_FAULT_TYPE_UNSPECIFIED:
        return ""
    found = enums.PUBLIC_FAULT_TYPE_OF.get(number)
    if found is None:
        known = ", ".join(pb.PublicFaultType.Name(each) for each in enums.PUBLIC_FAULT_TYPE_OF)
        raise _wrong(field, f"{number} is not one of {known}")
    return found


def _assertion(path: str, given: pb.PublicFault) -> Assertion:
    try:
        return request_fields.assertion(given.assertion, where_not_set=None)
    except Refusal as refusal:
        raise Refusal(refusal.status, f"{path}.{refusal.reason}") from refusal


def _influence(path: str, given: pb.PublicFault, node: ThisNode) -> Mapping[str, pb.PublicFaultInfluence]:
    """By their paths; all are of this node."""
    if not 0 < len(given.influence) <= MAX_INFLUENCE:
        wanted = f"1 to {MAX_INFLUENCE} entries are needed, not {len(given.influence)}"
        raise _wrong(f"{path}.influence", wanted)
    found = {f"{path}.influence[{place}]": each for place, each in enumerate(given.influence)}
    for place, each in found.items():
        reportable.check_node(place, each, node)
    return found


def _texts(path: str, given: pb.PublicFault) -> dict[str, str]:
    """The texts that the sender gave."""
    if len(given.description) > MAX_DESCRIPTION or not given.description.isprintable():
        wanted = f"at most {MAX_DESCRIPTION} characters on one line are needed, all of them printable"
        raise _wrong(f"{path}.description", f"{wanted}, not {given.description[:40]!r}")
    location = _location(f"{path}.location", given.location)
    described = {"description": given.description} if given.description else {}
    return described | {f"location.{key}": value for key, value in location.items()}


def _location(field: str, location: Mapping[str, str]) -> Mapping[str, str]:
    if len(location) > MAX_LOCATION:
        raise _wrong(field, f"at most {MAX_LOCATION} entries, not {len(location)}")
    for key, value in location.items():
        if not 0 < len(key) <= MAX_LOCATION_KEY or not key.isprintable():
            wanted = f"keys have 1 to {MAX_LOCATION_KEY} printable characters"
            raise _wrong(field, f"{wanted}, unlike {key[:40]!r}")
        if len(value) > MAX_LOCATION_VALUE:
            raise _wrong(f"{field}[{key!r}]", f"at most {MAX_LOCATION_VALUE} characters, not {len(value)}")
        if not value.isprintable():
            raise _wrong(f"{field}[{key!r}]", f"printable characters are needed, not {value[:40]!r}")
    return location


def _made_id(field: str, code: str, devices: Sequence[ReportedDevice]) -> str:
    """The same for every name of a device, and for each device another: each is ended by itself."""
    ids = {NODE if device.name == NODE else device.id for device in devices}
    if len(ids) != 1:
        raise _wrong(field, f"missing; it may be left out where one device is named, not {len(ids)}")
    return f"{code}.{ids.pop()}"


def _is_open(fault_id: str, reporter: Reporter, node: ThisNode) -> bool:
    """Whether there is a fault of that id that the caller may end."""
    openers = node.open.get(f"{reporter.sender}/{fault_id}", frozenset())
    return bool(openers and (reporter.ends_all or openers & {reporter.by, ""}))


def _check_owner(field: str, fault_id: str, reporter: Reporter, node: ThisNode) -> None:
    openers = node.open.get(f"{reporter.sender}/{fault_id}", frozenset())
    if openers and not _is_open(fault_id, reporter, node):
        sender, opened_by = reporter.sender, ", ".join(sorted(openers))
        whose = f"{fault_id} of {sender} was opened by {opened_by}, not by {reporter.by}"
        several = f"list those that share the name {sender} in public.senders.{sender}.certificates"
        advice = f"only the caller that opened it, or an operator, can end it; {several}"
        raise Refusal(Status.PERMISSION_DENIED, f"{field}: {whose}; {advice}")


async def report_public_fault(
    context: Context, senders: Senders, caller: Caller, request: pb.ReportPublicFaultRequest
) -> CallResult:
    try:
        reporter = senders.admit(request.sender, caller)
        async with senders.turn:
            # The largest message takes a third of a second: other calls are served meanwhile.
            faults = await asyncio.to_thread(_checked, context, senders, reporter, request)
            answer, taken = await context.order(faults)
    except Refusal as refusal:
        senders.refused(request.sender, refusal.status)
        raise
    senders.accepted(request.sender, answer.reported)
    results = [
        pb.PublicFaultResult(fault_id=fault.report.fault_id, outcome=enums.PUBLIC_FAULT_OUTCOMES[outcome])
        for fault, outcome in zip(faults.faults, answer.reported, strict=True)
    ]
    return CallResult(
        message=pb.ReportPublicFaultResponse(node=context.node, results=results),
        result=f"{request.id}: {_summary(answer.reported)}",
        taken=taken,
    )


def _checked(
    context: Context, senders: Senders, reporter: Reporter, request: pb.ReportPublicFaultRequest
) -> PublicFaults:
    now_ms = time.time_ns() // 1_000_000
    check_message(request, now_ms)
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
            checked_fault(f"faults[{place}]", fault, reporter, node)
            for place, fault in enumerate(request.faults)
        )
    )


def _opened_by(conditions: Iterable[Condition]) -> Mapping[str, frozenset[str]]:
    """The identities of those who opened a reported fault, by its name."""
    openers: dict[str, set[str]] = {}
    for report in (each.origin.report for each in conditions if each.origin.report is not None):
        openers.setdefault(report.name, set()).add(report.by)
    return {name: frozenset(by) for name, by in openers.items()}


def _summary(outcomes: tuple[Reported, ...]) -> str:
    return ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in Counter(outcomes).items())
