"""The live cells of devices, sources and faults: all that the engine remembers is a set of cells.

A cell is replaced, never changed. Those that each occurrence of a fault replaces have no slots: see
``state.cells.changed``. A stored ``Carried`` holds one, so compaction needs no knowledge
of any rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.model.condition import Condition
from nodeagent.core.model.enums import Handling, Kind, Level, Verdict
from nodeagent.core.model.inputs import Holder
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
class DeviceProcesses:
    """The processes on a device as last reported, and those that were the last to leave, at ``left_ns``.

    ``is_current``: reported since the daemon's last start, and readable since. ``owners``: by ``Holder.key``
    the supervised job that such a process is of, as ``JobBegun`` reported it.
    """

    device_id: str
    holders: tuple[Holder, ...]
    left: tuple[Holder, ...] = ()
    left_ns: int = 0
    is_current: bool = True
    owners: Mapping[str, str] = field(default_factory=dict)


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
    """What the last event about a device showed: the fold of events, kept to find changes.

    ``verdict_since_ns`` is when the verdict changed last, 0 if no event has shown a change of it. It is not
    compared: it follows from the events, and a replay of the inputs alone does not have it. A device of which
    no event was emitted is as one of these without values.
    """

    device_id: str
    verdict: Verdict = Verdict.ALLOW
    handling: Handling = Handling.NONE
    verdict_since_ns: int = field(default=0, compare=False)

    def followed_by(self, verdict: Verdict, handling: Handling, at_ns: int) -> "Shown":
        """The same of the next event."""
        since_ns = self.verdict_since_ns if verdict is self.verdict else at_ns
        return Shown(device_id=self.device_id, verdict=verdict, handling=handling, verdict_since_ns=since_ns)


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
    | DeviceProcesses
    | Source
    | Baseline
    | Shown
    | Era
)
