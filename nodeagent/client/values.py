"""What the client hands out: frozen values in the words of nodeagent. ``received`` makes them of messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from nodeagent.core.model import (
    EventKind,
    Handling,
    HoldKind,
    JobStage,
    Kind,
    Level,
    Recommendation,
    ResetMode,
    ResetStage,
    Verdict,
    Wanted,
)


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
        uuid, epoch, seq = text.rsplit(":", 2)
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
class JobNote:
    """What an event says of a job. An unknown ``stage`` or ``recommended`` is None."""

    name: str
    run: int
    stage: JobStage | None
    why: str
    recommended: Recommendation | None
    strategy: str


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
    network_unhealthy: bool
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
    job: JobNote | None = None

    @property
    def seq(self) -> int:
        return self.position.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds a device; ``start_time`` (clock ticks since boot) distinguishes reused pids."""

    pid: int
    start_time: int
    command: str
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobClaim:
    """A job that said it uses a device; ``kind`` is in the words of its hook."""

    job: str
    kind: str


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
    network_unhealthy: bool
    observed: bool
    observed_at: datetime | None
    reasons: tuple[Reason, ...]
    attributes: Mapping[str, str]
    holders: tuple[Holder, ...] | None
    claims: tuple[JobClaim, ...]


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
    occurrences: tuple[datetime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An isolation set by a person, a pending reset or a quiesce; ``until`` None: until released.

    ``owner`` is in whose name it was set, ``set_by`` who called then, as the daemon knew him. A quiesce is on
    the node and changes no verdict. An unknown ``kind`` is None.
    """

    id: str
    kind: HoldKind | None
    device_id: str
    device: str
    owner: str
    reason: str
    since: datetime
    until: datetime | None
    set_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The reset of a group of devices (names), the one that asked first.

    ``who`` is the person who asked, "" where the faults ``codes`` did. ``blocked_by`` says in words what
    blocks it. ``due_at`` is when its stage ends by itself. ``result`` begins with done, failed,
    timed_out, interrupted or refused, and is "" until it has ended; ``report`` is how it was done. ``once``:
    it was ordered though resets are switched off. An unknown mode or stage is None.
    """

    id: str
    devices: tuple[str, ...]
    device_ids: tuple[str, ...]
    mode: ResetMode | None
    stage: ResetStage | None
    codes: tuple[str, ...]
    condition_ids: tuple[str, ...]
    who: str
    reason: str
    attempt: int
    approved: bool
    blocked_by: tuple[str, ...]
    proposed_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    verified: tuple[str, ...]
    result: str
    report: str
    once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """What may be done to a job: stopped and run again here, also for another job's chip, run elsewhere."""

    in_place: bool
    yields: bool
    reschedules: bool
    strategy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that uses the node. One whose command is not supervised has no ``stage``, ``wanted``, ``run``,
    ``pid`` and ``since``.

    ``why``, ``code`` and ``device`` are of what it was asked last. ``status`` is its supervisor's exit status
    once it has ended, None before, or where it ended without a word. What is unknown is None.
    """

    name: str
    kind: str
    stage: JobStage | None
    wanted: Wanted | None
    run: int
    devices: tuple[str, ...]
    device_ids: tuple[str, ...]
    recommended: Recommendation | None
    why: str
    code: str
    device: str
    device_id: str
    isolated: bool
    handling: Handling
    by_operator: bool
    policy: JobPolicy
    pid: int
    uid: int
    since: datetime | None
    due_at: datetime | None
    status: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of a source of signals. The node is UNKNOWN while one that is on it cannot run, or one
    that is ``required`` is not on it.

    ``device_id`` is the one device it cannot observe, "" where it is about all of the source.
    """

    name: str
    observing: bool
    lost_at: datetime | None
    reason: str
    required: bool
    device_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A durable name: whose it is, what it acknowledged last and when; ``lag`` is how many events follow."""

    name: str
    owner: str
    seq: int
    lag: int
    acked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole state: forget what was known before. ``durable`` false: a restart may forget its number.

    ``missed_from_seq`` is the first event left out before it, 0 if none that was asked for; ``oldest_seq`` is
    the first that is still kept, 0 if none.
    """

    position: Position
    reason: str
    durable: bool
    missed_from_seq: int
    oldest_seq: int
    at: datetime
    catalog_digest: str
    devices: tuple[Device, ...]
    conditions: tuple[Condition, ...]
    promotions: tuple[Promotion, ...]
    holds: tuple[Hold, ...]
    sources: tuple[Source, ...]
    resets: tuple[Reset, ...]
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """Nothing that passes the filter up to here: the position may be stored."""

    position: Position
    durable: bool


Update = Snapshot | Event | Bookmark
