"""The inputs of the core from sources, people and the shell. Exhaustive and self-describing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.model.enums import ActionState, Assertion, Kind, Loss
from nodeagent.core.model.traits import Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Another system's name for a fault that it found: ``sender`` and, of its own choice, ``fault_id``.

    ``began_ms`` is when the fault began, by the sender's clock (unix time): it distinguishes two occurrences
    of one fault id, and is no deadline. ``by`` is the identity of the caller who opened it; "" where the name
    of the sender is kept for its own callers, and in what older versions stored.
    """

    sender: str
    fault_id: str
    began_ms: int
    by: str = ""

    @property
    def name(self) -> str:
        """The name that callers use: two callers may use the same name for different faults."""
        return f"{self.sender}/{self.fault_id}"

    @property
    def key(self) -> str:
        """The name, and the caller's identity after a blank: names and ids contain none."""
        return f"{self.name} of {self.by}" if self.by else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A raw report of one code by one source.

    ``device`` is the name the source uses (``npu0``, ``node``, a PCI address such as
    ``0000:3b:00.0``). ``first_ns``/``last_ns`` are the source's own stamps on the rule clock:
    evidence only, unless ``backdated`` (this boot's kernel ring read at start, replayed files),
    when ``last_ns`` is the time of the occurrence. ``severity`` is Ascend's, 0..3. ``trusted`` is
    false for a line that user space wrote to the kernel log. ``report`` identifies a fault that another
    system found; faults of two reports are never one fault.
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
    report: Report | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveCode:
    """``evidence`` is what the source knows besides the code: a fault that opens by it keeps it."""

    code: str
    severity: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSet:
    """From a poll: the codes active on ``device`` (or on all of the source's) at ``begun_ns``.

    ``complete`` is false when a call failed or a list was filled to its capacity: such a set may
    open conditions and never closes one. ``unread`` are codes, without what refines them, that could not be
    asked for: a complete set gives no information about these.
    """

    source: str
    device: str
    codes: tuple[ActiveCode, ...]
    begun_ns: int
    complete: bool
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that uses a device; ``start_time`` (clock ticks since boot) distinguishes reused pids."""

    pid: int
    start_time: int
    command: str
    job: str = ""

    @property
    def key(self) -> str:
        """Never another process's on this boot."""
        return f"{self.pid}/{self.start_time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesListed:
    """The processes on a device, sent on change only. An empty tuple means known to be free.

    Not ``known``: they could be read before, and cannot any more.
    """

    device: str
    holders: tuple[Holder, ...]
    known: bool = True


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
    """A device answers under ``device`` (its name). ``identity`` is the hardware's own id, "" if unreadable.

    Those of its attributes that decide anything are ``Traits``; docs/attributes.md lists all.
    """

    source: str
    device: str
    kind: Kind
    vendor: str
    identity: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def traits(self) -> Traits:
        return Traits(self.attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSeen:
    """What a driver has seen of the device with this ``identity`` while it was well (see ``Baseline``)."""

    source: str
    identity: str
    number: int
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGone:
    source: str
    device: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLost:
    """A source cannot observe (``device`` empty: nothing at all; else that device only).

    One that cannot run (``how``) leaves the node UNKNOWN, and so does any that is ``required``.
    """

    source: str
    reason: str
    device: str = ""
    required: bool = False
    how: Loss = Loss.NOT_READ


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBack:
    """A source has made its first complete read again (of ``device``, or of everything)."""

    source: str
    device: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAbsent:
    """Nothing of a source is on this node, as its worker found, and nothing requires it to be there."""

    source: str
    reason: str


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
    """A person's order: ``what`` is the verb, one of ``core.machines.orders``.

    ``device`` is the name or id of a device; an approval or refusal may name a reset instead. ``who`` is the
    caller as the daemon knows it; ``owner`` is the person in whose name the caller acts, "" in orders that
    name none or were stored before there were owners. ``only`` is the id of the one hold, promotion or
    condition that a release or resume is to end, "" for all. ``force``: others' holds too. ``only_if_well``:
    a device that is still faulty is not released; false in orders of versions that did not ask the core.
    ``once``: this reset is to be done though the configuration has none done.
    """

    who: str
    what: str
    device: str
    reason: str = ""
    until_ns: int | None = None
    only: str = ""
    owner: str = ""
    force: bool = False
    only_if_well: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A job hook reports that ``job`` uses (``claimed``) or has left a device."""

    device: str
    job: str
    kind: str
    claimed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFault:
    """One fault as another system reports it. ``devices`` are ids or names; a recovery is of all of them.

    ``is_now``: no time was given with it, so that it is newer than every earlier report of it; the
    ``began_ms`` of its report is then the time of receipt. ``ends_all``: a recovery also ends what other
    callers opened under the same name.
    """

    report: Report
    code: str
    assertion: Assertion
    devices: tuple[str, ...]
    evidence: Mapping[str, str] = field(default_factory=dict)
    is_now: bool = False
    ends_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFaults:
    """One message of another system: taken whole, in its order, or not at all."""

    faults: tuple[PublicFault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetsRecorded:
    """The record of resets as read at a start: for ids of devices, and for the node (``NODE``), when each
    was reset, oldest first, rule clock.
    """

    resets_ns: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStarted:
    action_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """How an attempt of an action went; 0 (from versions that did not number them): of the one that runs."""

    action_id: str
    state: ActionState
    reason: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSource:
    """A source that the configuration has. The state of the node is unknown while one that ``lists`` devices
    was neither read in this boot nor seen to be absent, or while one that is ``needed`` was not read for
    long.
    """

    name: str
    needed: bool
    lists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The daemon begins (again). Always the first input that a new process steps for itself.

    ``sources`` are those that it is about to read; none in inputs of versions that did not list them.
    ``doubt`` is what is doubtful about the time since the last boot, "" if nothing. ``resumed_ns`` is how far
    the engine had come before: what fell due later waits for a read. The engine fills it in what it gives to
    be stored.
    """

    boot_id: str
    version: str
    doubt: str = ""
    resumed_ns: int | None = None
    sources: tuple[ExpectedSource, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Only time passes. Never stored."""
