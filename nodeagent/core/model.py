"""The nouns of nodeagent: what flows into the core, out of it, and what it can be seen to hold.

Everything here is a frozen value. Nothing here decides, reads a clock or does I/O.

Times are integers of nanoseconds on the *rule clock* (it never steps back and is the same
line across daemon restarts and boots); only the store and the outlets turn them into wall time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

ALL_DEVICES = "*"
"""In an ``ActiveSet``: the set speaks for every device of its source."""

NODE = "node"
"""The name of the device that stands for the node itself."""


class Assertion(StrEnum):
    """What a signal claims of its fault (Ascend's words; an Xid or a kernel line is ``once``)."""

    OCCUR = "occur"
    RECOVER = "recover"
    ONCE = "once"


class Kind(StrEnum):
    """What sort of part a code speaks of; each kind has its own set of levels."""

    CHIP = "chip"
    UNIFIEDBUS = "unifiedbus"
    NODE = "node"
    PUBLIC = "public"
    LINK = "link"
    HOST = "host"


class Level(StrEnum):
    """How a fault is to be handled."""

    NOT_HANDLE = "NotHandleFault"
    SUB_HEALTH = "SubHealthFault"
    RESTART_REQUEST = "RestartRequest"
    RESTART_BUSINESS = "RestartBusiness"
    FREE_RESTART_NPU = "FreeRestartNPU"
    RESTART_NPU = "RestartNPU"
    PRE_SEPARATE_NPU = "PreSeparateNPU"
    SEPARATE_NPU = "SeparateNPU"
    MANUALLY_SEPARATE_NPU = "ManuallySeparateNPU"
    RESTART_REQUEST_FAULT = "RestartRequestFault"
    RESET_FAULT = "ResetFault"
    PRE_SEPARATE_FAULT = "PreSeparateFault"
    SEPARATE_FAULT = "SeparateFault"


class Verdict(StrEnum):
    """May new work be placed on the device."""

    ALLOW = "ALLOW"
    UNKNOWN = "UNKNOWN"
    NO_NEW_JOBS = "NO_NEW_JOBS"
    ISOLATE = "ISOLATE"


class Handling(StrEnum):
    """What is to become of the work that runs on the device."""

    NONE = "NONE"
    JOB_STRATEGY = "JOB_STRATEGY"
    RERUN_REQUEST = "RERUN_REQUEST"
    RESTART_JOB = "RESTART_JOB"
    RESET_WHEN_IDLE = "RESET_WHEN_IDLE"
    STOP_RESET_RESTART = "STOP_RESET_RESTART"
    RESCHEDULE = "RESCHEDULE"


class Affects(StrEnum):
    """Whose verdict a condition changes besides its own device's: nobody schedules onto a port."""

    SELF = "self"
    CHIPS_BEHIND = "chips_behind"
    NODE = "node"


class EventKind(StrEnum):
    RAISED = "raised"
    LEVEL_CHANGED = "level_changed"
    VERDICT_CHANGED = "verdict_changed"
    CLEARED = "cleared"
    NOTICE = "notice"
    PROMOTED = "promoted"
    RELEASED = "released"
    SUPPRESSED = "suppressed"
    ISOLATED = "isolated"
    ACTION_PROPOSED = "action_proposed"
    ACTION_STARTED = "action_started"
    ACTION_FINISHED = "action_finished"
    DEVICE_SEEN = "device_seen"
    DEVICE_GONE = "device_gone"
    DEVICE_REPLACED = "device_replaced"
    SOURCE_LOST = "source_lost"
    SOURCE_BACK = "source_back"
    QUIESCED = "quiesced"
    RESUMED = "resumed"
    TABLES_RELOADED = "tables_reloaded"
    TABLES_REJECTED = "tables_rejected"
    STARTED = "started"


class ActionState(StrEnum):
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"


# --------------------------------------------------------------------------- inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A raw report of one code by one source.

    ``device`` is the name the source uses (``npu0``, ``node``, a PCI address such as
    ``0000:3b:00.0``). ``first_ns``/``last_ns`` are the source's own stamps on the rule clock:
    evidence only, unless ``backdated`` (this boot's kernel ring read at start, replayed files),
    when ``last_ns`` is the time of the occurrence. ``severity`` is Ascend's, 0..3. ``trusted`` is
    false for a line that user space wrote to the kernel log.
    """

    source: str
    device: str
    code: str
    assertion: Assertion
    severity: int | None = None
    count: int = 1
    first_ns: int | None = None
    last_ns: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    backdated: bool = False
    trusted: bool = True
    injected: bool = False
    affect_verdict: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveCode:
    code: str
    severity: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSet:
    """From a poll: the codes active on ``device`` (or on all of the source's) at ``begun_ns``.

    ``complete`` is false when a call failed or a list was filled to its capacity: such a set may
    open conditions and never closes one.
    """

    source: str
    device: str
    codes: tuple[ActiveCode, ...]
    begun_ns: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds a device; ``start_time`` (clock ticks since boot) tells reused pids apart."""

    pid: int
    start_time: int
    command: str
    job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """The processes on a device, sent on change only. An empty tuple means known to be free."""

    device: str
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Telemetry crossed a threshold rule's bound (``above`` true) or its clear bound."""

    source: str
    device: str
    rule: str
    above: bool
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterMark:
    """A monotone counter's value, sent seldom."""

    source: str
    device: str
    metric: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSeen:
    """A device answers under ``device`` (its name). ``identity`` is the part's own id, "" if unreadable.

    Attributes in use: ``pci`` (domain:bus:device.function), ``slot``, ``product``, ``board``,
    ``group`` (reset group), ``serial``, ``firmware``, ``upstream`` (PCI addresses above it, comma
    separated, nearest first).
    """

    source: str
    device: str
    kind: Kind
    vendor: str
    identity: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGone:
    source: str
    device: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLost:
    """A source cannot observe (``device`` empty: nothing at all; else that device only)."""

    source: str
    reason: str
    device: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBack:
    """A source has made its first complete read again (of ``device``, or of everything)."""

    source: str
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogChanged:
    """From here on inputs are judged under the catalog with this digest."""

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesRejected:
    """New tables were refused; the last good ones stay. ``reason`` names file, line or key."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A person's order: ``what`` is the verb (isolate, release, quiesce, resume, approve, refuse)."""

    who: str
    what: str
    device: str
    reason: str = ""
    until_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A job hook says that ``job`` uses (``claimed``) or has left a device."""

    device: str
    job: str
    kind: str
    claimed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStarted:
    action_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    action_id: str
    state: ActionState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The daemon begins (again). Always the first input that a new process steps for itself.

    ``resumed_ns`` is how far the engine had come before: what fell due later waits for a read. The
    engine fills it in what it gives to be stored.
    """

    boot_id: str
    version: str
    resumed_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Only time passes. Never stored."""


# --------------------------------------------------------------------------- live cells
# All state of the engine is a set of cells. A cell is a value: replaced, never changed. A stored
# ``Carried`` holds one cell, so compaction needs no knowledge of any rule.


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One part, keyed by ``id``: the part's own id, or ``slot:NAME`` while that was never read."""

    id: str
    name: str
    kind: Kind
    vendor: str
    source: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    gone: str = ""
    seen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A fault open on a device. ``id`` = device id, code, ordinal.

    ``level`` is the level in force (after duration and relation rules), ``base_level`` the row's.
    ``present_ns`` is the start of the uninterrupted presence that an ``occur`` or an ActiveSet showed,
    None where only ``once`` signals came; only a presence is closed by an ActiveSet.
    ``recovered_ns`` is set while a recovery must still last, ``judged`` once this presence reached its
    duration rule's time-out, ``timed_out`` while that rule's level is in force. ``phase`` counts the
    steps a level takes with time (RestartRequest after its tolerance). ``held_by`` are the processes
    on the device when it opened, None where unknown.
    """

    id: str
    device_id: str
    code: str
    name: str
    source: str
    base_level: Level
    level: Level
    opened_ns: int
    last_ns: int
    count: int = 1
    present_ns: int | None = None
    recovered_ns: int | None = None
    judged: bool = False
    timed_out: bool = False
    phase: int = 0
    level_since_ns: int = 0
    held_by: tuple[Holder, ...] | None = None
    severity: int | None = None
    unknown: bool = False
    affects: Affects = Affects.SELF
    user_induced: bool = False
    rescheduling: bool = False
    injected: bool = False
    affect_verdict: bool = True
    boot_id: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """How many conditions or promotions a (device, code or rule) has had: ids are never reused."""

    device_id: str
    key: str
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Occurrences of one code on one device that a rule still counts, oldest first.

    ``burst_last_ns`` is the last signal of the burst that the newest occurrence stands for.
    """

    device_id: str
    code: str
    rule: str
    occurrences_ns: tuple[int, ...] = ()
    burst_last_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A condition that a rule raised; it outlives the fault. Not ``effective`` while it may be correlated."""

    id: str
    device_id: str
    rule: str
    code: str
    name: str
    source: str
    level: Level
    fired_ns: int
    effective: bool
    occurrences_ns: tuple[int, ...] = ()
    last_occurrence_ns: int = 0
    quiet_since_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """When a (device, code) last occurred, for correlation across chips.

    ``suppressed_ns`` is the occurrence that last fired here and was found correlated.
    """

    device_id: str
    code: str
    occurrences_ns: tuple[int, ...]
    suppressed_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """A notice given for (device, code): repeated at most once a minute, then with the count."""

    device_id: str
    code: str
    told_ns: int
    untold: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An isolation set by a person, a pending reset or a quiesce."""

    id: str
    device_id: str
    owner: str
    reason: str
    since_ns: int
    until_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Severity:
    """Ascend severity learnt for a code."""

    code: str
    severity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The known holders of a device."""

    device_id: str
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of a source, or of one device of it (``device_id``).

    ``lost_ns`` is set while it is known not to observe, ``unread`` from ``Started`` until its first
    complete read. ``awaited`` is true from either until that read or the start deadline: timers of its
    conditions are held meanwhile. ``stale`` is true once it was unread for so long that the last
    verdict no longer stands.
    """

    name: str
    device_id: str = ""
    lost_ns: int | None = None
    reason: str = ""
    required: bool = False
    awaited: bool = False
    awaited_since_ns: int = 0
    stale: bool = False
    unread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the last event about a device said of it: the fold of events, kept to find changes."""

    device_id: str
    level: Level
    verdict: Verdict
    handling: Handling


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """What the engine is living in: boot, catalog, start of this daemon."""

    boot_id: str
    started_ns: int
    digest: str
    rebooted: bool = False


Cell = (
    Device
    | Condition
    | Ordinal
    | Window
    | Promotion
    | Sighting
    | Noticed
    | Hold
    | Severity
    | Held
    | Source
    | Shown
    | Era
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Compaction's input: one live cell, put back as it was."""

    cell: Cell


Input = (
    Signal
    | ActiveSet
    | Holders
    | Edge
    | CounterMark
    | DeviceSeen
    | DeviceGone
    | SourceLost
    | SourceBack
    | CatalogChanged
    | TablesRejected
    | Operator
    | Claims
    | ActionStarted
    | ActionResult
    | Started
    | Carried
    | Tick
)


# --------------------------------------------------------------------------- outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One contribution to a verdict: ``kind`` condition, promotion, hold, source or device."""

    kind: Literal["condition", "promotion", "hold", "source", "device"]
    id: str
    code: str = ""
    level: Level | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What changed or was done. ``level``, ``verdict``, ``handling``, ``reasons`` are the device's after it.

    ``at_ns`` is on the rule clock: for a deadline, the deadline. The store adds the sequence
    number and the wall time. ``condition_level`` is that of the condition or promotion concerned.
    """

    kind: EventKind
    at_ns: int
    device: str
    device_id: str
    device_kind: Kind
    level: Level
    verdict: Verdict
    handling: Handling
    subhealthy: bool = False
    observed: bool = True
    code: str = ""
    name: str = ""
    condition_id: str = ""
    condition_level: Level | None = None
    rule: str = ""
    source: str = ""
    count: int = 1
    user_induced: bool = False
    unknown: bool = False
    injected: bool = False
    userspace: bool = False
    why: str = ""
    reasons: tuple[Reason, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something to be done to devices. ``id`` is a function of the inputs."""

    id: str
    kind: Literal["reset"]
    devices: tuple[str, ...]
    reasons: tuple[str, ...]
    deadline_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one step. Order is a contract: records and events in one transaction, then publish, then act."""

    records: tuple[Input, ...] = ()
    events: tuple[Event, ...] = ()
    actions: tuple[Action, ...] = ()


# --------------------------------------------------------------------------- what can be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """A device as it stands. ``observed_ns`` is the rule time it was last known to be observed."""

    id: str
    name: str
    kind: Kind
    vendor: str
    level: Level
    verdict: Verdict
    handling: Handling
    subhealthy: bool
    observed: bool
    observed_ns: int
    reasons: tuple[Reason, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the outlets may show, of one moment. ``devices`` holds the node itself too, first."""

    now_ns: int = 0
    boot_id: str = ""
    digest: str = ""
    devices: tuple[DeviceView, ...] = ()
    conditions: tuple[Condition, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    holds: tuple[Hold, ...] = ()
    sources: tuple[Source, ...] = ()
