"""The live cells of devices, sources and faults: all that the engine remembers is a set of cells.

A cell is replaced, never changed. Those that each occurrence of a fault replaces have no slots: see
``state.cells.changed``. A stored ``Carried`` holds one, so compaction needs no knowledge
of any rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.model.enums import Affects, Backing, Handling, Kind, Level, Verdict
from nodeagent.core.model.inputs import Holder, Report
from nodeagent.core.model.jobs import Job
from nodeagent.core.model.reset_cells import Claimed, Hold, PastResets, Reset
from nodeagent.core.model.rule_cells import Promotion, RuleCell, Sighting, Window
from nodeagent.core.model.traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device, keyed by ``id``: that of the hardware, or ``slot:NAME`` while that was never read.

    ``seen``: a driver lists it. ``unread``: it does, and has not read it since it first did.
    """

    id: str
    name: str
    kind: Kind
    vendor: str
    source: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    gone: str = ""
    seen: bool = False
    unread: bool = False

    @property
    def traits(self) -> Traits:
        return Traits(self.attributes)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A fault open on a device. ``id`` = device id, code, ordinal.

    ``level`` is the level in force (after duration and relation rules), ``base_level`` the row's.
    ``present_ns`` is the start of the uninterrupted presence that an ``occur`` or an ActiveSet showed,
    None where only ``once`` signals came; only a presence is closed by an ActiveSet.
    ``recovered_ns`` is set while a recovery must still last, ``judged`` once this presence reached its
    duration rule's time-out, ``timed_out`` while that rule's level is in force. ``phase`` counts the
    steps a level takes with time (RestartRequest after its tolerance). ``held_by`` are the processes
    on the device when it opened, None where unknown. ``heard_ns`` is the time of its last report:
    ``last_ns``, or ``once_ns``, its newest ``once``, which ``last_ns`` leaves out where the code has a
    duration rule. ``occurred_ns`` is its newest occurrence. ``relations`` are the relation rules that found
    their pair and give it their level. ``rule`` is the rule that raised it, from what it watches, "" for a
    signal.
    ``backing`` is which source supports it; ``believed_ns`` is when a kernel line alone began to be believed,
    and once it is contradicted, when the time began for which it still is. ``report`` identifies a fault that
    another system found, None for one that this node found; ``reported_ns`` is the time from which its
    sender's silence counts.
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
    occurred_ns: int = 0
    relations: tuple[str, ...] = ()
    rule: str = ""
    backing: Backing = Backing.OWN
    believed_ns: int = 0
    once_ns: int | None = None
    report: Report | None = None
    reported_ns: int = 0

    @property
    def heard_ns(self) -> int:
        return self.last_ns if self.once_ns is None else max(self.last_ns, self.once_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """How many conditions or promotions a (device, code or rule) has had: ids are never reused.

    ``recovered_ns`` is when the driver last reported that one was over.
    """

    device_id: str
    key: str
    last: int
    recovered_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The newest occurrence of a fault that has no open condition, which may still meet another fault's.

    ``root`` is false for a companion, which was absorbed and takes no companions of its own.
    """

    device_id: str
    code: str
    level: Level
    occurred_ns: int
    root: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """A companion that its source shows as present; it opens nothing while its root is open.

    ``root_id`` is the id of the root's condition, ``last_ns`` its newest occurrence. ``rule`` is the rule
    that shows it, "" where the polls of its source do.
    """

    device_id: str
    code: str
    source: str
    root_id: str
    last_ns: int
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """The recovery of a reported fault (``Report.key``), which came at ``at_ns``: its occurrences up to
    ``began_ms`` are over, though a message about one of them may still be on its way.
    """

    report: str
    began_ms: int
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """A notice given for (device, code), first by ``source``: at most once a minute, then with the count."""

    device_id: str
    code: str
    told_ns: int
    untold: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Severity:
    """Ascend severity learnt for a code."""

    code: str
    severity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The processes on a device as last reported, and those that were the last to leave, at ``left_ns``.

    ``is_current``: reported since the daemon's last start, and readable since.
    """

    device_id: str
    holders: tuple[Holder, ...]
    left: tuple[Holder, ...] = ()
    left_ns: int = 0
    is_current: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of a source, or of one device of it (``device_id``).

    ``lost_ns`` is set while it is known not to observe, ``unread`` from ``Started`` until its first
    complete read. ``awaited`` is true from either until that read or the start deadline: timers of its
    conditions are paused meanwhile. ``stale`` is true once it was unread for so long that the last
    verdict no longer holds. ``needed`` as in ``ExpectedSource``; ``absent``: nothing of it is here.
    ``blind``: the node is not observed without it, be it required or not: it was lost in such a way, or lists
    devices and was not read in this boot.
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
    needed: bool = False
    absent: bool = False
    blind: bool = False

    @property
    def observes(self) -> bool:
        """It was read whole, and not lost since: what is known of it holds."""
        return self.lost_ns is None and not self.unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a driver has seen of a device while it was well: ``content``, in the driver's own format.

    ``number`` counts the orders to start over, so that what was seen before one is not taken after it. Empty
    ``content``: such an order was given, and what the driver sees next is right.
    """

    device_id: str
    source: str
    number: int = 0
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the last event about a device showed: the fold of events, kept to find changes."""

    device_id: str
    verdict: Verdict
    handling: Handling


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """The period that the engine is in: boot, catalog and since when, start of this daemon."""

    boot_id: str
    started_ns: int
    digest: str
    rebooted: bool = False
    catalog_ns: int = 0


Cell = (
    Device
    | Condition
    | Ordinal
    | Window
    | Promotion
    | Sighting
    | Trace
    | Absorbed
    | Withdrawn
    | RuleCell
    | Noticed
    | Hold
    | Reset
    | PastResets
    | Claimed
    | Job
    | Severity
    | Held
    | Source
    | Baseline
    | Shown
    | Era
)
