"""Values of the core as messages of the API: devices, faults, events, resets, jobs.

Only the differences of fields are listed here: ``mapping`` copies a field that has the same name on both
sides, and stops the import where one side lacks it. It decides nothing and reads nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.machines.reset_refusal import DryRun, Step, Used
from nodeagent.core.model import (
    NODE,
    Condition,
    DeviceView,
    Event,
    Hold,
    Holder,
    JobNote,
    JobPolicy,
    JobView,
    Level,
    Promotion,
    Reason,
    Reset,
    Source,
)
from nodeagent.job.lines import LearntLimits
from nodeagent.messages.mapping import timestamp, writer
from nodeagent.messages.pb import control_service_pb2
from nodeagent.messages.pb import types_pb2 as pb
from nodeagent.store.records import Publication, StoredEvent, StoreId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """``node_id`` is the machine-id, ``boot_id`` the kernel's; ``started_wall_ns`` when this daemon began."""

    node_id: str
    node_name: str
    boot_id: str
    version: str
    started_wall_ns: int


def at_least(level: Level, minimum: Level | None) -> bool:
    """Whether a level is this or worse, by the order of display; no minimum passes all."""
    return minimum is None or PRECEDENCE[level] >= PRECEDENCE[minimum]


def node_identity(facts: NodeFacts) -> pb.NodeIdentity:
    return pb.NodeIdentity(node_id=facts.node_id, node_name=facts.node_name, boot_id=facts.boot_id)


def store_id(value: StoreId) -> pb.StoreId:
    return _store_id(value)


def core_store_id(message: pb.StoreId) -> StoreId:
    return StoreId(uuid=message.uuid, epoch=message.epoch)


def _holders(value: Sequence[Holder] | None) -> pb.Holders | None:
    return None if value is None else pb.Holders(holders=map(_holder, value))


def _claims(value: Iterable[tuple[str, str]]) -> list[pb.JobClaim]:
    return [pb.JobClaim(job=job, kind=kind) for job, kind in value]


_store_id = writer(StoreId, pb.StoreId)
_holder = writer(Holder, pb.Holder)
reason = writer(Reason, pb.Reason)
_job_note = writer(JobNote, pb.JobNote)
_event = writer(
    Event,
    pb.Event,
    computed=["seq", "at"],
    unsent=["at_ns"],
    parts={pb.Reason: reason, pb.JobNote: _job_note},
)
_device = writer(
    DeviceView,
    pb.Device,
    computed=["observed_at"],
    unsent=["observed_ns", "source", "verdict_since_ns"],
    converted={"holders": _holders, "claims": _claims},
    parts={pb.Reason: reason},
)
_condition = writer(
    Condition,
    pb.Condition,
    computed=["device"],
    renamed={"last_at": "heard_ns", "affects_verdict": "affect_verdict"},
    nested=["presence", "grade", "backing", "origin"],
)
_promotion = writer(
    Promotion,
    pb.Promotion,
    computed=["device"],
    unsent=["source", "level_since_ns", "phase", "quiet_since_ns", "capped"],
)
_hold = writer(Hold, pb.Hold, computed=["device"])
_source = writer(
    Source,
    pb.Source,
    computed=["observing", "reason"],
    unsent=["reason", "awaited", "awaited_since_ns", "stale", "unread", "needed", "absent", "blind"],
)


def event(stored: StoredEvent) -> pb.Event:
    return _event(stored.event, seq=stored.seq, at=timestamp(stored.wall_ns))


class Published:
    """One publication as messages: rule times become wall times, device ids get their names.

    ``devices`` (names or ids; empty: all) leaves out everything about other devices.
    """

    def __init__(self, publication: Publication, devices: Iterable[str] = ()) -> None:
        self.publication = publication
        self._view = publication.view
        self._offset_ns = publication.wall_offset_ns
        self._names = {device.id: device.name for device in self._view.devices}
        self._wanted = frozenset(devices)

    def at(self, rule_ns: int) -> Timestamp:
        return timestamp(rule_ns + self._offset_ns)

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

    def sources(self) -> list[pb.Source]:
        return [self.source(each) for each in self._view.sources]

    def device(self, value: DeviceView) -> pb.Device:
        observed_at = self.at(value.observed_ns) if value.observed_ns else None
        return _device(value, self._offset_ns, observed_at=observed_at)

    def condition(self, value: Condition) -> pb.Condition:
        return _condition(value, self._offset_ns, device=self.name_of(value.device_id))

    def promotion(self, value: Promotion) -> pb.Promotion:
        return _promotion(value, self._offset_ns, device=self.name_of(value.device_id))

    def hold(self, value: Hold) -> pb.Hold:
        return _hold(value, self._offset_ns, device=self.name_of(value.device_id))

    def source(self, value: Source) -> pb.Source:
        return _source(
            value,
            self._offset_ns,
            observing=value.observes,
            reason=value.reason or ("not read since the start" if value.unread else ""),
        )

    def name_of(self, device_id: str) -> str:
        return self._names.get(device_id, device_id)

    def wants(self, device_id: str) -> bool:
        return not self._wanted or device_id in self._wanted or self.name_of(device_id) in self._wanted


_reset_message = writer(
    Reset,
    pb.Reset,
    computed=["devices", "verified"],
    renamed={"device_ids": "members", "condition_ids": "conditions", "blocked_by": "hindered"},
    unsent=["asker_id", "confirmed", "verified", "outcome", "may_ask_again", "told", "unsettled_ns"],
)
_used = writer(Used, control_service_pb2.ResetsUsed)
_step = writer(Step, control_service_pb2.ResetStep)
plan = writer(
    DryRun,
    control_service_pb2.ResetPlan,
    unsent=["setting"],
    parts={control_service_pb2.ResetsUsed: _used, control_service_pb2.ResetStep: _step},
)


def resets(published: Published) -> list[pb.Reset]:
    """Every one that touches a device that is wanted."""
    return [
        reset(published, each)
        for each in published.publication.view.resets
        if any(map(published.wants, each.members))
    ]


def reset(published: Published, value: Reset) -> pb.Reset:
    return _reset_message(
        value,
        published.publication.wall_offset_ns,
        devices=[published.name_of(each) for each in value.members],
        verified=[published.name_of(each) for each in value.verified],
    )


_policy = writer(JobPolicy, pb.JobPolicy)
_job_message = writer(
    JobView,
    pb.Job,
    computed=["devices", "device", "pid", "uid", "since", "step_limit_seconds", "start_limit_seconds"],
    renamed={"device_ids": "devices"},
    unsent=["peer", "said", "since_ns", "handling_device", "handling_code", "sub_health"],
    parts={pb.JobPolicy: _policy},
)


def jobs(published: Published, limits: Callable[[str], LearntLimits] | None = None) -> list[pb.Job]:
    """Every one that uses a device that is wanted; with the node all. ``limits``: what its supervisor has
    learnt, by the name of the job.
    """
    return [
        job(published, each, None if limits is None else limits(each.name))
        for each in published.publication.view.jobs
        if published.wants(NODE) or any(map(published.wants, each.devices))
    ]


def job(published: Published, value: JobView, limits: LearntLimits | None = None) -> pb.Job:
    return _job_message(
        value,
        published.publication.wall_offset_ns,
        devices=[published.name_of(each) for each in value.devices],
        device=published.name_of(value.device_id) if value.device_id else "",
        pid=value.peer.pid if value.peer else 0,
        uid=value.peer.uid if value.peer else 0,
        since=published.at(value.since_ns) if value.stage else None,
        step_limit_seconds=_whole(None if limits is None else limits.step_s),
        start_limit_seconds=_whole(None if limits is None else limits.start_s),
    )


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)
