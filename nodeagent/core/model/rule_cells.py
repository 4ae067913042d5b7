"""The live cells of the rules: what they have counted, raised and watch. As in ``cells``."""

from dataclasses import dataclass, replace
from typing import Any, Self

from nodeagent.core.model.enums import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One of a job, at a place of the device ("" where unknown), from ``at_ns`` until ``last_ns``."""

    at_ns: int
    last_ns: int
    job: str
    place: str = ""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Occurrences of one code on one device that a rule still counts, oldest first.

    ``burst_last_ns`` is the last signal of the burst that the newest occurrence counts for. ``attributed``
    are those of a rule that counts by job or place, in the order in which they were last reported.
    """

    device_id: str
    code: str
    rule: str
    occurrences_ns: tuple[int, ...] = ()
    burst_last_ns: int | None = None
    attributed: tuple[Occurrence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """A condition that a rule raised; it outlives the fault. Not ``effective`` while it may be correlated.

    ``phase`` counts the steps its level takes with time since ``level_since_ns``. ``capped``: at the
    rule's level it would have isolated one chip more than the configuration lets repetition isolate.
    """

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
    level_since_ns: int = 0
    phase: int = 0
    quiet_since_ns: int | None = None
    capped: bool = False

    def in_next_phase(self) -> Self:
        return replace(self, phase=self.phase + 1)


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """When a (device, code) last occurred, for correlation across chips.

    ``suppressed_ns`` is the occurrence that last fired here and was found correlated.
    """

    device_id: str
    code: str
    occurrences_ns: tuple[int, ...]
    suppressed_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCell:
    """What a rule that raises a fault of its own has seen on a device, as reported by ``source``.

    Each kind of such rules has a type of these (``core.rules.kinds``). ``part`` is which reading of a family
    it is of, "" for a rule that watches one thing. ``rule``, in what follows, is the rule as the tables in
    force have it.
    """

    device_id: str
    rule: str
    source: str
    part: str = ""

    def due_ns(self, rule: Any, /) -> int | None:
        """When its kind wants to look at it again, None for not by time."""
        raise NotImplementedError

    def after_clear(self, _at_ns: int, /) -> Self:
        """The cell after a person or a reset has ended the fault that it raised: what continues as before
        raises that once more.
        """
        return self

    def survives_reload(self, _before: Any, _rule: Any, /) -> bool:
        """Whether new tables leave it as it is: its rule raises the same, though its bounds may differ."""
        return True
