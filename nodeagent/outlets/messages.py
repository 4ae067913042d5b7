"""Core values as protobuf messages and back: the single place where the two meet.

Every enum is a table, built whole at import: a word of the core without a number in the proto
stops the import. It decides nothing and reads nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.core.model import (
    Assertion,
    Condition,
    DeviceView,
    Event,
    EventKind,
    Handling,
    Hold,
    Holder,
    HoldKind,
    Kind,
    Level,
    Promotion,
    Reason,
    ResetMode,
    ResetStage,
    Source,
    Verdict,
)
from nodeagent.core.verdict import PRECEDENCE
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import types_pb2 as pb
from nodeagent.store.records import Publication, StoredEvent, StoreId

_SECOND_NS = 1_000_000_000

Word = TypeVar("Word", bound=StrEnum)


def _numbers(words: type[Word], prefix: str, suffixes: Mapping[Word, str] | None = None) -> dict[Word, Any]:
    """Word -> number: the number's name is the prefix, the word's name and, for some, a suffix."""
    suffixes = suffixes or {}
    return {word: getattr(pb, f"{prefix}_{word.name}{suffixes.get(word, '')}") for word in words}


KINDS: Mapping[Kind, pb.Kind] = _numbers(Kind, "KIND")
VERDICTS: Mapping[Verdict, pb.Verdict] = _numbers(Verdict, "VERDICT")
HANDLINGS: Mapping[Handling, pb.Handling] = _numbers(Handling, "HANDLING")
EVENT_KINDS: Mapping[EventKind, pb.EventKind] = _numbers(EventKind, "EVENT_KIND")
ASSERTIONS: Mapping[Assertion, pb.Assertion] = _numbers(Assertion, "ASSERTION")
HOLD_KINDS: Mapping[HoldKind, pb.HoldKind] = _numbers(HoldKind, "HOLD_KIND")
RESET_MODES: Mapping[ResetMode, pb.ResetMode] = _numbers(ResetMode, "RESET_MODE")
RESET_STAGES: Mapping[ResetStage, pb.ResetStage] = _numbers(ResetStage, "RESET_STAGE")
LEVELS: Mapping[Level, pb.Level] = _numbers(
    Level, "LEVEL", {Level.NOT_HANDLE: "_FAULT", Level.SUB_HEALTH: "_FAULT"}
)
REASON_KINDS: Mapping[str, pb.ReasonKind] = {
    "condition": pb.REASON_KIND_CONDITION,
    "promotion": pb.REASON_KIND_PROMOTION,
    "hold": pb.REASON_KIND_HOLD,
    "source": pb.REASON_KIND_SOURCE,
    "device": pb.REASON_KIND_DEVICE,
}

ASSERTION_OF = {number: assertion for assertion, number in ASSERTIONS.items()}
LEVEL_OF = {number: level for level, number in LEVELS.items()}
EVENT_KIND_OF = {number: kind for kind, number in EVENT_KINDS.items()}
VERDICT_OF = {number: verdict for verdict, number in VERDICTS.items()}
HANDLING_OF = {number: handling for handling, number in HANDLINGS.items()}
KIND_OF = {number: kind for kind, number in KINDS.items()}
HOLD_KIND_OF = {number: kind for kind, number in HOLD_KINDS.items()}
RESET_MODE_OF = {number: mode for mode, number in RESET_MODES.items()}
RESET_STAGE_OF = {number: stage for stage, number in RESET_STAGES.items()}
REASON_KIND_OF = {number: kind for kind, number in REASON_KINDS.items()}


def timestamp(wall_ns: int) -> Timestamp:
    seconds, nanos = divmod(wall_ns, _SECOND_NS)
    return Timestamp(seconds=seconds, nanos=nanos)


def wall_ns(stamp: Timestamp) -> int:
    return stamp.seconds * _SECOND_NS + stamp.nanos


def level_number(level: Level | None) -> pb.Level:
    return pb.LEVEL_UNSPECIFIED if level is None else LEVELS[level]


def at_least(level: Level, minimum: Level | None) -> bool:
    """Whether a level is this or worse, by the order of display; no minimum passes all."""
    return minimum is None or PRECEDENCE[level] >= PRECEDENCE[minimum]


def node_identity(facts: NodeFacts) -> pb.NodeIdentity:
    return pb.NodeIdentity(node_id=facts.node_id, node_name=facts.node_name, boot_id=facts.boot_id)


def store_id(value: StoreId) -> pb.StoreId:
    return pb.StoreId(uuid=value.uuid, epoch=value.epoch)


def core_store_id(message: pb.StoreId) -> StoreId:
    return StoreId(uuid=message.uuid, epoch=message.epoch)


def holders(value: Sequence[Holder]) -> pb.Holders:
    return pb.Holders(
        holders=[
            pb.Holder(pid=each.pid, start_time=each.start_time, command=each.command, job=each.job)
            for each in value
        ]
    )


def reason(value: Reason) -> pb.Reason:
    return pb.Reason(
        kind=REASON_KINDS[value.kind],
        id=value.id,
        code=value.code,
        level=level_number(value.level),
        text=value.text,
    )


def event(stored: StoredEvent) -> pb.Event:
    value: Event = stored.event
    return pb.Event(
        seq=stored.seq,
        at=timestamp(stored.wall_ns),
        kind=EVENT_KINDS[value.kind],
        device=value.device,
        device_id=value.device_id,
        device_kind=KINDS[value.device_kind],
        level=LEVELS[value.level],
        verdict=VERDICTS[value.verdict],
        handling=HANDLINGS[value.handling],
        subhealthy=value.subhealthy,
        observed=value.observed,
        code=value.code,
        name=value.name,
        condition_id=value.condition_id,
        condition_level=level_number(value.condition_level),
        rule=value.rule,
        source=value.source,
        count=value.count,
        user_induced=value.user_induced,
        unknown=value.unknown,
        injected=value.injected,
        userspace=value.userspace,
        why=value.why,
        reasons=[reason(each) for each in value.reasons],
        evidence=value.evidence,
    )


class Scene:
    """One publication as messages: rule times become wall times, device ids get their names.

    ``devices`` (names or ids; empty: all) leaves out everything about other devices.
    """

    def __init__(self, publication: Publication, devices: Iterable[str] = ()) -> None:
        self.publication = publication
        self._view = publication.view
        self._names = {device.id: device.name for device in self._view.devices}
        self._wanted = frozenset(devices)

    def at(self, rule_ns: int) -> Timestamp:
        return timestamp(rule_ns + self.publication.wall_offset_ns)

    def devices(self) -> list[pb.Device]:
        return [self.device(each) for each in self._view.devices if self.wants(each.id)]

    def conditions(self, minimum: Level | None = None) -> list[pb.Condition]:
        return [
            self.condition(each)
            for each in self._view.conditions
            if self.wants(each.device_id) and at_least(each.level, minimum)
        ]

    def promotions(self, minimum: Level | None = None) -> list[pb.Promotion]:
        return [
            self.promotion(each)
            for each in self._view.promotions
            if self.wants(each.device_id) and at_least(each.level, minimum)
        ]

    def holds(self) -> list[pb.Hold]:
        return [self.hold(each) for each in self._view.holds if self.wants(each.device_id)]

    def sources(self, known: Iterable[Source] | None = None) -> list[pb.Source]:
        """``known``: all that there are, where others are than those of the view."""
        return [self.source(each) for each in (self._view.sources if known is None else known)]

    def device(self, value: DeviceView) -> pb.Device:
        return pb.Device(
            id=value.id,
            name=value.name,
            kind=KINDS[value.kind],
            vendor=value.vendor,
            level=LEVELS[value.level],
            verdict=VERDICTS[value.verdict],
            handling=HANDLINGS[value.handling],
            subhealthy=value.subhealthy,
            observed=value.observed,
            observed_at=self.at(value.observed_ns) if value.observed_ns else None,
            reasons=[reason(each) for each in value.reasons],
            attributes=value.attributes,
            holders=None if value.holders is None else holders(value.holders),
            claims=[pb.JobClaim(job=job, kind=kind) for job, kind in value.claims],
        )

    def condition(self, value: Condition) -> pb.Condition:
        return pb.Condition(
            id=value.id,
            device_id=value.device_id,
            device=self.name_of(value.device_id),
            code=value.code,
            name=value.name,
            source=value.source,
            level=LEVELS[value.level],
            base_level=LEVELS[value.base_level],
            opened_at=self.at(value.opened_ns),
            last_at=self.at(value.heard_ns),
            count=value.count,
            user_induced=value.user_induced,
            unknown=value.unknown,
            injected=value.injected,
            affects_verdict=value.affect_verdict,
            evidence=value.evidence,
        )

    def promotion(self, value: Promotion) -> pb.Promotion:
        return pb.Promotion(
            id=value.id,
            device_id=value.device_id,
            device=self.name_of(value.device_id),
            rule=value.rule,
            code=value.code,
            name=value.name,
            level=LEVELS[value.level],
            fired_at=self.at(value.fired_ns),
            effective=value.effective,
            occurrences=[self.at(each) for each in value.occurrences_ns],
        )

    def hold(self, value: Hold) -> pb.Hold:
        return pb.Hold(
            id=value.id,
            device_id=value.device_id,
            device=self.name_of(value.device_id),
            owner=value.owner,
            reason=value.reason,
            since=self.at(value.since_ns),
            until=None if value.until_ns is None else self.at(value.until_ns),
            kind=HOLD_KINDS[value.kind],
            set_by=value.set_by,
        )

    def source(self, value: Source) -> pb.Source:
        return pb.Source(
            name=value.name,
            observing=value.observes,
            lost_at=None if value.lost_ns is None else self.at(value.lost_ns),
            reason=value.reason or ("not read since the start" if value.unread else ""),
            required=value.required,
            device_id=value.device_id,
        )

    def name_of(self, device_id: str) -> str:
        return self._names.get(device_id, device_id)

    def wants(self, device_id: str) -> bool:
        return not self._wanted or device_id in self._wanted or self.name_of(device_id) in self._wanted
