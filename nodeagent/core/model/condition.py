"""A fault open on a device: its identity, and four values that change by themselves.

What a function needs of a condition is mostly one of them: it takes that one. Each occurrence
of a fault replaces a condition and its presence, which have no slots: see ``state.cells.changed``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from nodeagent.core.model.enums import Affects, Belief, Level
from nodeagent.core.model.inputs import Holder, Report


@dataclass(frozen=True, kw_only=True)
class Presence:
    """Since when the fault is there, and when it was reported.

    ``last_ns`` is the time of its last report, but for a ``once`` where the code has a duration rule:
    ``once_ns`` is the newest ``once``. ``occurred_ns`` is its newest occurrence, ``count`` how many there
    were, ``boot_id`` the boot of the newest report.
    ``present_ns`` is the start of the uninterrupted presence that an ``occur`` or an ActiveSet showed, None
    where only ``once`` signals came; only a presence is closed by an ActiveSet. ``judged``: this presence
    reached the time-out of its duration rule. ``recovered_ns`` is set while a recovery must still last.
    """

    opened_ns: int
    last_ns: int
    count: int = 1
    present_ns: int | None = None
    recovered_ns: int | None = None
    judged: bool = False
    boot_id: str = ""
    occurred_ns: int = 0
    once_ns: int | None = None

    @property
    def heard_ns(self) -> int:
        """The time of its last report, of any kind."""
        return self.last_ns if self.once_ns is None else max(self.last_ns, self.once_ns)

    @property
    def is_shown(self) -> bool:
        """Its source still shows it. What came but once may be over by itself."""
        return self.present_ns is not None and self.recovered_ns is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """How severe the fault is, and for what.

    ``level`` is the level in force, ``base_level`` that of the row, which two things change: ``timed_out``,
    the level of its duration rule is in force; and ``relations``, the relation rules that found their pair.
    ``phase`` counts the steps that a level takes with time (RestartRequest after its tolerance) since
    ``level_since_ns``. ``unknown``: no row names the code, so that ``severity``, as the driver reports it,
    gives the level. ``rescheduling``: a fault that only restarts its job came too often to restart it in
    place. Without ``affect_verdict`` it is only shown.
    """

    base_level: Level
    level: Level
    phase: int = 0
    level_since_ns: int = 0
    timed_out: bool = False
    relations: tuple[str, ...] = ()
    severity: int | None = None
    unknown: bool = False
    affects: Affects = Affects.SELF
    affect_verdict: bool = True
    user_induced: bool = False
    rescheduling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """What supports the fault: ``belief`` is which source does, ``evidence`` what the sources reported.

    ``believed_ns`` is when a kernel line alone began to be believed, and once it is contradicted, when the
    time began for which it still is.
    """

    belief: Belief = Belief.OWN
    believed_ns: int = 0
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What opened the fault: a signal of a source; or ``rule``, from what that watches; or an operator who
    ``injected`` it.

    ``users`` are the processes on the device at that time, None where unknown. ``report`` identifies a fault
    that another system found, None for one that this node found; ``reported_ns`` is the time from which the
    silence of its sender counts.
    """

    rule: str = ""
    injected: bool = False
    users: tuple[Holder, ...] | None = None
    report: Report | None = None
    reported_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A fault open on a device. ``id`` = device id, code, ordinal. ``source`` is the one that can end it."""

    id: str
    device_id: str
    code: str
    name: str
    source: str
    presence: Presence
    grade: Grade
    backing: Backing = field(default_factory=Backing)
    origin: Origin = field(default_factory=Origin)

    @property
    def level(self) -> Level:
        """As a promotion has one."""
        return self.grade.level

    @property
    def occurred_ns(self) -> int:
        """As a trace has one."""
        return self.presence.occurred_ns

    def in_next_phase(self) -> Self:
        """As a promotion may be."""
        return replace(self, grade=replace(self.grade, phase=self.grade.phase + 1))
