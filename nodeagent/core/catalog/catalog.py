"""The catalog: every row, rule and pattern of the tables, and the settings that decide, immutable.

It answers what the tables contain about a code. It never loads, checks or merges files (that is
``nodeagent.tables``), and it judges nothing: that is ``lookup.classify`` and the rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from nodeagent.core.catalog.codes import Decoding, canonical, part_of
from nodeagent.core.catalog.settings import SECOND_NS, Settings
from nodeagent.core.model import Affects, Assertion, CountedBy, Kind, Level, Recovery


class OnceHold(StrEnum):
    """Where a ``once`` that nothing else shows is taken as recovered after the setting ``once_hold``.

    Always; where its row has no quiet time of its own; or only where no row names it, because the silence of
    the source is no sign of a recovery.
    """

    ALWAYS = "always"
    NO_QUIET_TIME = "no_quiet_time"
    NO_ROW = "no_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTraits:
    """``burst_ns``: signals of a fault this close are one occurrence, unless its rule has another value.

    ``graded``: the source reports how severe its codes are. One that no row names is handled by that, and
    takes its name from its digits (``Decoding``). Those of a chip's network ports, by code or by the part of
    the chip that the code names, are faults of the port however severe.
    """

    burst_ns: int = 0
    once_hold: OnceHold = OnceHold.NO_QUIET_TIME
    graded: bool = False
    network_codes: tuple[str, ...] = ()
    network_parts: tuple[str, ...] = ()

    def is_of_network(self, key: str) -> bool:
        """Whether a code, as it is compared, is a fault of a chip's network port and so not of the chip."""
        return key in self.network_codes or part_of(key) in self.network_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearOn:
    """What closes a condition of the row; any of them suffices."""

    recover: bool = False
    reset: bool = False
    reboot: bool = False
    job_end: bool = False
    operator: bool = False
    quiet_ns: int | None = None


EACH_DETAIL = "*"
EACH_PART = ".*"
"""Ends the name of a metric that covers a family of readings."""


def family_of(metric: str) -> str:
    """The family that the reading belongs to, "" where its name has no part.

    >>> family_of("link_up.3"), family_of("power_watts")
    ('link_up.*', '')
    """
    name, dot, _ = metric.partition(".")
    return f"{name}{EACH_PART}" if dot else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row of the tables for one code. ``file`` is where the row in force is, ``FILE:LINE``.

    A ``code`` that ends in ``*`` is a family row: it classifies codes of the family that have no row
    of their own, and such a condition is marked unknown.

    A refined code, ``CODE.DETAIL``, is this row's as well. ``levels`` gives the level by detail (in capitals)
    where that changes it; each detail in it is a fault of its own, and one with another level is closed by no
    quiet time. The detail ``*`` covers each one not named: every one of them is a fault of its own.
    ``notice``: it is reported and opens nothing. ``level_source`` is who set the level (one of
    ``tables.levels.LevelSource``, "" where unknown) and ``level_reason`` why it is not what the vendor
    recommends: they are for people and decide nothing.
    """

    code: str
    kind: Kind
    vendor: str
    name: str
    level: Level
    levels: Mapping[str, Level] = field(default_factory=dict)
    notice: bool = False
    user_induced: bool = False
    recovery: Recovery = Recovery.LEVEL
    affects: Affects = Affects.SELF
    clear_on: ClearOn = field(default_factory=ClearOn)
    description: str = ""
    action: str = ""
    level_source: str = ""
    level_reason: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyRule:
    """``times`` occurrences in ``time_window_ns`` promote to ``level``.

    ``release_ns`` None: only a person releases. ``burst_ns`` None: that of the signal's source
    (``SourceTraits``). ``at_least``: the rule counts only faults whose level is this or worse by precedence
    (for the rule on every code). ``in_use``: it counts none that came while the device was not in use.
    ``counted_by``: which occurrences are counted together (see ``core.rules.windows``). A rule whose codes
    include "*" yields to any that names the code.
    """

    id: str
    codes: tuple[str, ...]
    times: int
    time_window_ns: int
    level: Level
    release_ns: int | None = None
    burst_ns: int | None = None
    correlation_ns: int = 30 * SECOND_NS
    at_least: Level | None = None
    in_use: bool = False
    counted_by: CountedBy = CountedBy.DEVICE
    kind: Kind = Kind.CHIP
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationRule:
    """Present strictly longer than the fault time-out: ``level``; gone longer than the other: cleared."""

    id: str
    codes: tuple[str, ...]
    fault_timeout_ns: int
    recover_timeout_ns: int
    level: Level
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisingRule:
    """A rule that raises ``code``, a fault of its own, from what it watches."""

    id: str
    code: str
    file: str = ""

    @property
    def watches(self) -> str:
        raise NotImplementedError

    def raises_as(self, other: "RaisingRule") -> bool:
        """Whether one may end what the other has raised: both raise the same code from the same reading."""
        return type(self) is type(other) and (self.code, self.watches) == (other.code, other.watches)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRule(RaisingRule):
    """A reading above ``above`` for longer than ``for_ns`` is the fault; below ``clear_below`` it ends."""

    metric: str
    above: float
    clear_below: float
    for_ns: int

    @property
    def watches(self) -> str:
        return self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRule(RaisingRule):
    """A counter that rises by ``increase`` within the window is the fault; a window later it ends.

    A ``metric`` NAME.* is a family: each reading NAME.PART counts for itself. ``lifetime``: the counter
    outlives driver and power, so that one below its last value has lost its newest part, and is no new one.
    """

    metric: str
    increase: int
    time_window_ns: int
    lifetime: bool = False

    @property
    def watches(self) -> str:
        return self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCauseRule(RaisingRule):
    """A fault of ``codes`` on ``devices`` devices or more at once is the node's, while it is on so many.

    ``codes`` may include families. ``within_ns``: their newest occurrences lie at most so far apart, 0 where
    it is enough that they are there at the same time.
    """

    codes: tuple[str, ...]
    devices: int
    within_ns: int = 0

    @property
    def watches(self) -> str:
        return ", ".join(self.codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRule:
    """Two faults near each other: ``then`` is what becomes of ``code`` (see ``core.faults.relations``).

    ``with_codes`` may include families. ``level`` goes with ``then = "level"`` only.
    """

    id: str
    code: str
    with_codes: tuple[str, ...]
    within_ns: int
    same: Literal["device", "node", "job"]
    then: Literal["absorb", "level", "cancel"]
    level: Level | None = None
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A pattern for lines of the kernel log. ``code`` may name groups, ``XID_{code}``, and so may ``device``,
    ``npu{id}``, which else is ``node`` or a group. ``unnamed``: the code of a line that does not name the
    device, and so is about the node; "" the same. ``assertion`` recover: of lines that report a fault as
    over. ``continuation``: of a driver that marks each of its lines as the continuation of another. ``part``:
    where its groups took part, the fault is of that part of the device (see ``core.state.registry``). Lines
    that ``unless`` matches are left out. ``find`` is searched in what the group "rest" of ``regex`` matched,
    for more groups.
    """

    id: str
    code: str
    regex: str
    device: str
    unless: str = ""
    find: str = ""
    unnamed: str = ""
    assertion: Assertion = Assertion.ONCE
    continuation: bool = False
    part: str = ""
    file: str = ""

    @property
    def codes(self) -> tuple[str, ...]:
        """The templates of the codes that its lines can have."""
        return (self.code, self.unnamed) if self.unnamed else (self.code,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All of it. ``rows`` are keyed by ``canonical(code)``; families end in ``*``. ``sources`` are by name.

    ``digest`` is the sha256 (hex) of the rest in canonical form, so equal digests decide alike.
    """

    digest: str
    rows: Mapping[str, Row] = field(default_factory=dict)
    frequency: tuple[FrequencyRule, ...] = ()
    duration: tuple[DurationRule, ...] = ()
    threshold: tuple[ThresholdRule, ...] = ()
    counter: tuple[CounterRule, ...] = ()
    common_cause: tuple[CommonCauseRule, ...] = ()
    relation: tuple[RelationRule, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    decoding: Decoding = field(default_factory=Decoding)
    sources: Mapping[str, SourceTraits] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)

    @property
    def raising(self) -> tuple[RaisingRule, ...]:
        return (*self.threshold, *self.counter, *self.common_cause)

    def row(self, code: str) -> Row | None:
        """The row of the code, else of the code that it refines, else of the closest family, else None."""
        key = canonical(code)
        if (row := self.rows.get(key)) is not None:
            return row
        refined, _, detail = key.rpartition(".")
        if refined and (row := self.row(refined)) is not None:
            return _refined(row, code.strip(), detail)
        for length in range(len(key), -1, -1):
            if (family := self.rows.get(key[:length] + "*")) is not None:
                return family
        return None


def _refined(row: Row, code: str, detail: str) -> Row:
    """The row as it is for the code with this detail: with a level of its own, or unchanged."""
    level = row.levels.get(detail) or row.levels.get(EACH_DETAIL)
    if level is None:
        return row
    code = row.code if row.code.endswith("*") else code
    clear_on = row.clear_on if level is row.level else replace(row.clear_on, quiet_ns=None)
    return replace(row, code=code, level=level, levels={}, clear_on=clear_on)
