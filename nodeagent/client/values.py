"""What the client hands out: frozen values in the words of nodeagent, and how they come from messages.

Numbers that a newer daemon may send and this library does not know become the careful choice: an
unknown verdict is ``UNKNOWN``, an unknown level or kind of device is None, an unknown event a notice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from nodeagent.client import actions
from nodeagent.client.actions import Reset
from nodeagent.client.times import moment
from nodeagent.core.model import EventKind, Handling, HoldKind, Kind, Level, Verdict
from nodeagent.outlets import messages
from nodeagent.outlets.pb import fault_service_pb2, types_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Everything up to ``seq`` of this store was seen. Keep it with its effect: ``str`` and ``parse``."""

    uuid: str
    epoch: int
    seq: int

    def __str__(self) -> str:
        return f"{self.uuid}:{self.epoch}:{self.seq}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ``ValueError`` if the text is not what ``str`` gave."""
        uuid, epoch, seq = text.split(":")
        return cls(uuid=uuid, epoch=int(epoch), seq=int(seq))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One contribution to a verdict. ``kind`` is condition, promotion, hold, source or device."""

    kind: str
    id: str
    code: str
    level: Level | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What changed. ``level``, ``verdict``, ``handling`` and ``reasons`` are the device's after it."""

    position: Position
    at: datetime
    kind: EventKind
    device: str
    device_id: str
    device_kind: Kind | None
    level: Level | None
    verdict: Verdict
    handling: Handling
    subhealthy: bool
    observed: bool
    code: str
    name: str
    condition_id: str
    condition_level: Level | None
    rule: str
    source: str
    count: int
    user_induced: bool
    unknown: bool
    injected: bool
    userspace: bool
    why: str
    reasons: tuple[Reason, ...]
    evidence: Mapping[str, str]

    @property
    def seq(self) -> int:
        return self.position.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds a device; ``start_time`` (clock ticks since boot) tells reused pids apart."""

    pid: int
    start_time: int
    command: str
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as it stands; the node itself is ``node``. ``holders`` None: unknown, (): it is free."""

    id: str
    name: str
    kind: Kind | None
    vendor: str
    level: Level | None
    verdict: Verdict
    handling: Handling
    subhealthy: bool
    observed: bool
    observed_at: datetime | None
    reasons: tuple[Reason, ...]
    attributes: Mapping[str, str]
    holders: tuple[Holder, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A fault open on a device now."""

    id: str
    device_id: str
    device: str
    code: str
    name: str
    source: str
    level: Level | None
    base_level: Level | None
    opened_at: datetime
    last_at: datetime
    count: int
    user_induced: bool
    unknown: bool
    injected: bool
    affects_verdict: bool
    evidence: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A condition that a rule raised; it outlives the fault until released."""

    id: str
    device_id: str
    device: str
    rule: str
    code: str
    name: str
    level: Level | None
    fired_at: datetime
    effective: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An isolation set by a person, a pending reset or a quiesce; ``until`` None: until released.

    A quiesce is on the node and changes no verdict. An unknown ``kind`` is None.
    """

    id: str
    kind: HoldKind | None
    device_id: str
    device: str
    owner: str
    reason: str
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole state: forget what was known before. ``durable`` false: a restart may forget its number.

    ``missed_from_seq`` is the first event left out before it, 0 if none that was asked for.
    """

    position: Position
    reason: str
    durable: bool
    missed_from_seq: int
    at: datetime
    catalog_digest: str
    devices: tuple[Device, ...]
    conditions: tuple[Condition, ...]
    promotions: tuple[Promotion, ...]
    holds: tuple[Hold, ...]
    resets: tuple[Reset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """Nothing that passes the filter up to here: the position may be stored."""

    position: Position
    durable: bool


Told = Snapshot | Event | Bookmark


def position(store_id: types_pb2.StoreId, seq: int) -> Position:
    return Position(uuid=store_id.uuid, epoch=store_id.epoch, seq=seq)


def reason(message: types_pb2.Reason) -> Reason:
    return Reason(
        kind=messages.REASON_KIND_OF.get(message.kind, ""),
        id=message.id,
        code=message.code,
        level=messages.LEVEL_OF.get(message.level),
        text=message.text,
    )


def event(message: types_pb2.Event, store_id: types_pb2.StoreId) -> Event:
    return Event(
        position=position(store_id, message.seq),
        at=moment(message.at),
        kind=messages.EVENT_KIND_OF.get(message.kind, EventKind.NOTICE),
        device=message.device,
        device_id=message.device_id,
        device_kind=messages.KIND_OF.get(message.device_kind),
        level=messages.LEVEL_OF.get(message.level),
        verdict=messages.VERDICT_OF.get(message.verdict, Verdict.UNKNOWN),
        handling=messages.HANDLING_OF.get(message.handling, Handling.NONE),
        subhealthy=message.subhealthy,
        observed=message.observed,
        code=message.code,
        name=message.name,
        condition_id=message.condition_id,
        condition_level=messages.LEVEL_OF.get(message.condition_level),
        rule=message.rule,
        source=message.source,
        count=message.count,
        user_induced=message.user_induced,
        unknown=message.unknown,
        injected=message.injected,
        userspace=message.userspace,
        why=message.why,
        reasons=tuple(reason(each) for each in message.reasons),
        evidence=dict(message.evidence),
    )


def device(message: types_pb2.Device) -> Device:
    return Device(
        id=message.id,
        name=message.name,
        kind=messages.KIND_OF.get(message.kind),
        vendor=message.vendor,
        level=messages.LEVEL_OF.get(message.level),
        verdict=messages.VERDICT_OF.get(message.verdict, Verdict.UNKNOWN),
        handling=messages.HANDLING_OF.get(message.handling, Handling.NONE),
        subhealthy=message.subhealthy,
        observed=message.observed,
        observed_at=moment(message.observed_at) if message.HasField("observed_at") else None,
        reasons=tuple(reason(each) for each in message.reasons),
        attributes=dict(message.attributes),
        holders=_holders(message.holders) if message.HasField("holders") else None,
    )


def _holders(message: types_pb2.Holders) -> tuple[Holder, ...]:
    return tuple(
        Holder(pid=each.pid, start_time=each.start_time, command=each.command, job=each.job)
        for each in message.holders
    )


def condition(message: types_pb2.Condition) -> Condition:
    return Condition(
        id=message.id,
        device_id=message.device_id,
        device=message.device,
        code=message.code,
        name=message.name,
        source=message.source,
        level=messages.LEVEL_OF.get(message.level),
        base_level=messages.LEVEL_OF.get(message.base_level),
        opened_at=moment(message.opened_at),
        last_at=moment(message.last_at),
        count=message.count,
        user_induced=message.user_induced,
        unknown=message.unknown,
        injected=message.injected,
        affects_verdict=message.affects_verdict,
        evidence=dict(message.evidence),
    )


def promotion(message: types_pb2.Promotion) -> Promotion:
    return Promotion(
        id=message.id,
        device_id=message.device_id,
        device=message.device,
        rule=message.rule,
        code=message.code,
        name=message.name,
        level=messages.LEVEL_OF.get(message.level),
        fired_at=moment(message.fired_at),
        effective=message.effective,
    )


def hold(message: types_pb2.Hold) -> Hold:
    return Hold(
        id=message.id,
        kind=messages.HOLD_KIND_OF.get(message.kind),
        device_id=message.device_id,
        device=message.device,
        owner=message.owner,
        reason=message.reason,
        since=moment(message.since),
        until=moment(message.until) if message.HasField("until") else None,
    )


def snapshot(response: fault_service_pb2.WatchResponse) -> Snapshot:
    message = response.snapshot
    name = fault_service_pb2.SnapshotReason.Name(message.reason)
    return Snapshot(
        position=position(response.store_id, message.seq),
        reason=name.removeprefix("SNAPSHOT_REASON_").lower(),
        durable=response.durable,
        missed_from_seq=message.missed_from_seq,
        at=moment(message.at),
        catalog_digest=message.catalog_digest,
        devices=tuple(device(each) for each in message.devices),
        conditions=tuple(condition(each) for each in message.conditions),
        promotions=tuple(promotion(each) for each in message.promotions),
        holds=tuple(hold(each) for each in message.holds),
        resets=tuple(actions.reset(each) for each in message.resets),
    )
