"""What is exported: an event, or the report that events were lost, as one value that each form is made of.

The id of a record follows from the position in the store alone: a record that is sent again has the same id.
Nothing is sent here, and no clock is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from google.protobuf.message import Message

from nodeagent.client import Position
from nodeagent.client.received import position
from nodeagent.core.model import Verdict
from nodeagent.export.severity import LogSeverity, severity_of
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

RESYNC: Final = "resync"
"""The kind of a record that reports lost events; every other kind is that of an event."""

Form = Callable[[Message], Mapping[str, Any]]
"""The JSON form of a message, as ``-o json`` shows it."""

_REASONS: Final = enums.names_of(pb.SnapshotReason, "SNAPSHOT_REASON")
_REASON_OF: Final = {number: name.lower() for name, number in _REASONS.items()}

_MOST_NAMED: Final = 16
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_FROM_DATA: Final = (
    *("device_kind", "name", "level", "verdict", "handling", "condition_id", "condition_level", "rule"),
    *("source", "count", "injected", "why", "reason", "missed_from_seq", "missed_to_seq"),
)
"""Keys of the data of an event or a resync that are keys of a record too."""

MEANINGS: Final[Mapping[str, str]] = {
    "id": "`STORE:EPOCH:SEQ`, the same however often the event is sent; a resync ends in `:resync`",
    "seq": "the number of the event",
    "node": "the name of the node",
    "node_id": "its machine-id",
    "kind": "the kind of the event, such as `raised`; or `resync`",
    "device": "the name of the device",
    "device_id": "its lasting id",
    "code": "the fault code",
    "device_kind": "what sort of part the device is",
    "name": "the short name of the code",
    "level": "the level of the device after the event",
    "verdict": "the verdict of the device after the event",
    "handling": "the handling of the device after the event",
    "condition_id": "the id of the condition, promotion, hold or action",
    "condition_level": "the level of the condition or promotion",
    "rule": "the rule that caused it",
    "source": "the source of the signal",
    "count": "how many equal signals it represents",
    "injected": "true for a rehearsal",
    "why": "why it happened",
    "reason": "of a resync: why events are missing, such as `fell_behind`, `before_retention`, `other_store`",
    "missed_from_seq": "of a resync: the first event that is missing, where that is known",
    "missed_to_seq": "of a resync: the last one",
}
"""The keys of a record; one without a value is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRecord:
    """``data`` is the JSON form of the event, or of the resync. ``at_ns`` is wall time."""

    position: Position
    node: str
    node_id: str
    at_ns: int
    kind: str
    severity: LogSeverity
    device: str
    device_id: str
    code: str
    text: str
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.position}:{RESYNC}" if self.kind == RESYNC else str(self.position)

    @property
    def time(self) -> str:
        """RFC 3339 with microseconds and Z."""
        at = _EPOCH + timedelta(microseconds=self.at_ns // 1000)
        return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"

    def keys(self) -> dict[str, str | int | bool]:
        """All of ``MEANINGS`` that have a value, in that order."""
        own: dict[str, str | int | bool] = {
            "id": self.id,
            "seq": self.position.seq,
            "node": self.node,
            "node_id": self.node_id,
            "kind": self.kind,
            "device": self.device,
            "device_id": self.device_id,
            "code": self.code,
        }
        values: dict[str, Any] = own | {key: self.data.get(key) for key in _FROM_DATA}
        return {key: value for key, value in values.items() if value not in (None, "", 0)}


def records_of(response: pb.WatchResponse, form: Form) -> Iterator[ExportRecord]:
    """The events of one message of the stream; of another message none."""
    for event in response.batch.events:
        yield _of_event(response, event, form)


def _of_event(response: pb.WatchResponse, event: types_pb2.Event, form: Form) -> ExportRecord:
    kind = str(enums.EVENT_KIND_OF.get(event.kind, "unknown"))
    return ExportRecord(
        position=position(response.store_id, event.seq),
        node=response.node.node_name,
        node_id=response.node.node_id,
        at_ns=event.at.ToNanoseconds(),
        kind=kind,
        severity=severity_of(event),
        device=event.device,
        device_id=event.device_id,
        code=event.code,
        text=_text(event, kind),
        data=form(event),
    )


def _text(event: types_pb2.Event, kind: str) -> str:
    """``npu3 raised 80E01801 Multi-bit ECC errors when accessing the HBM: ISOLATE``."""
    subject = filter(None, (event.device, kind, event.code, event.name or event.why))
    return f"{' '.join(subject)}: {enums.VERDICT_OF.get(event.verdict, Verdict.UNKNOWN)}"


def resync_of(response: pb.WatchResponse, last: int) -> ExportRecord:
    """Of a snapshot: what was lost, up to event ``last``, and the devices that take no work now."""
    snapshot = response.snapshot
    devices = [_state(each) for each in snapshot.devices if each.verdict != types_pb2.VERDICT_ALLOW]
    first = snapshot.missed_from_seq
    reason = _REASON_OF.get(snapshot.reason, "unknown")
    return ExportRecord(
        position=position(response.store_id, last),
        node=response.node.node_name,
        node_id=response.node.node_id,
        at_ns=snapshot.at.ToNanoseconds(),
        kind=RESYNC,
        severity=LogSeverity.ERROR,
        device="",
        device_id="",
        code="",
        text=f"{_lost(first, last, reason)}; {_now(devices)}",
        data={
            "reason": reason,
            "missed_from_seq": first,
            "missed_to_seq": last if first else 0,
            "devices": devices,
        },
    )


def _lost(first: int, last: int, reason: str) -> str:
    if first:
        return f"events {first} to {last} were deleted before they were exported ({reason})"
    return f"events may be missing: the export goes on after event {last} of the present store ({reason})"


def _now(devices: Sequence[Mapping[str, Any]]) -> str:
    """``now: npu3 ISOLATE``; what is well is left out."""
    states = [f"{each['name']} {each['verdict']}" for each in devices[:_MOST_NAMED]]
    more = f" and {len(devices) - _MOST_NAMED} more" if len(devices) > _MOST_NAMED else ""
    return f"now: {', '.join(states)}{more}" if states else "now all devices are well"


def _state(device: types_pb2.Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "id": device.id,
        "verdict": str(enums.VERDICT_OF.get(device.verdict, Verdict.UNKNOWN)),
        "codes": sorted({reason.code for reason in device.reasons if reason.code}),
    }
