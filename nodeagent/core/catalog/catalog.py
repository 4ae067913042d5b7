"""The catalog: every table row, rule, pattern and deciding setting, immutable, as the core sees them.

It answers "what does the table say of this code". It never loads, checks or merges files: that is
``nodeagent.tables``. It judges nothing: that is ``classify`` and the rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from nodeagent.core.catalog.codes import Decoding as Decoding
from nodeagent.core.catalog.codes import Sensor as Sensor
from nodeagent.core.catalog.codes import canonical as canonical
from nodeagent.core.catalog.codes import is_hexadecimal as is_hexadecimal
from nodeagent.core.catalog.source_traits import OnceHold as OnceHold
from nodeagent.core.catalog.source_traits import SourceTraits as SourceTraits
from nodeagent.core.model import Affects as Affects
from nodeagent.core.model import Assertion, CountedBy, Kind, Level, Recovery, ResetMode

SECOND_NS = 1_000_000_000


class Mode(StrEnum):
    RESCHEDULING = "rescheduling"
    GRACEFUL = "graceful"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the tables say of one code. ``file`` is where the winning row stands, ``FILE:LINE``.

    A ``code`` that ends in ``*`` is a family row: it classifies codes of the family that have no row
    of their own, and such a condition is marked unknown.

    A refined code, ``CODE.DETAIL``, is this row's as well. ``levels`` says by detail (in capitals) where
    that changes the level; what it names is a fault of its own, and what has another level is closed by no
    quiet time. The detail ``*`` stands for each one not named: every one of them is a fault of its own.
    ``notice``: it is reported and opens nothing. ``level_source`` says who set the level (one of
    ``tables.levels.LevelSource``, "" where nobody said) and ``level_reason`` why it is not what the vendor
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

    ``release_ns`` None: only a person releases. ``burst_ns`` None: what the
    tables say of the source of the signal. ``at_least``: the rule
    counts only faults whose level is this or worse by precedence (for the rule on every code). ``in_use``:
    it counts none that came while nobody used the device. ``counted_by``: which occurrences are counted
    together (see ``core.faults.attribution``). A rule whose codes hold "*" yields to any that names the code.
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
        """Whether what one has raised the other may end: the same code from the same."""
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
    """A counter that rises by ``increase`` within the window is the fault; a window later it ends."""

    metric: str
    increase: int
    time_window_ns: int

    @property
    def watches(self) -> str:
        return self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRule:
    """Two faults near each other: what becomes of ``code`` is said by ``then`` (see ``core.rules.relation``).

    ``with_codes`` may hold families. ``level`` goes with ``then = "level"`` only.
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
    ``npu{id}``, which else is ``node`` or a group. ``assertion`` recover: of lines that say a fault is over.
    ``continuation``: of a driver that marks each of its lines as the continuation of another. ``part``: where
    its groups took part, the fault is of that part of the device (see ``core.devices.instances``).
    """

    id: str
    code: str
    regex: str
    device: str
    assertion: Assertion = Assertion.ONCE
    continuation: bool = False
    part: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSettings:
    """How far resets go, and their limits. ``modes`` is by vendor, ``mode`` for the others.

    A proposal is announced for ``announce_ns``, in mode ask a person has ``approval_ns`` to approve it, and
    what stands in its way has ``validity_ns`` to leave. The result must show within ``verify_ns``. A device
    is reset ``limit`` times in ``limit_window_ns``, the node ``node_limit`` times, with ``cool_down_ns``
    between any two. ``trust_process_list``: a chip without processes is free though nobody ever claimed one.
    ``terminate_registered``: a job that claimed the faulty chip does not stand in the way; it is ended.
    """

    mode: ResetMode = ResetMode.OFF
    modes: Mapping[str, ResetMode] = field(default_factory=dict)
    announce_ns: int = 30 * SECOND_NS
    approval_ns: int = 600 * SECOND_NS
    validity_ns: int = 3600 * SECOND_NS
    run_ns: int = 600 * SECOND_NS
    verify_ns: int = 150 * SECOND_NS
    cool_down_ns: int = 30 * SECOND_NS
    limit: int = 3
    node_limit: int = 12
    limit_window_ns: int = 6 * 3600 * SECOND_NS
    trust_process_list: bool = False
    terminate_registered: bool = False

    @property
    def is_on(self) -> bool:
        """Whether resets are done for any vendor."""
        return any(mode is not ResetMode.OFF for mode in (self.mode, *self.modes.values()))

    def of_vendor(self, vendor: str) -> ResetMode:
        return self.modes.get(vendor, self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSettings:
    """After how long a fault expires that another system reported and does not repeat; 0 for never.

    ``expire_after_by_sender``: of those for which another time is right.
    """

    expire_after_ns: int = 24 * 3600 * SECOND_NS
    expire_after_by_sender: Mapping[str, int] = field(default_factory=dict)

    def expiry_ns(self, sender: str) -> int:
        return self.expire_after_by_sender.get(sender, self.expire_after_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """How supervised jobs are treated. A job that was asked to stop has ``stop_timeout_ns``, and may wait for
    its chips ``heal_timeout_ns``. ``in_place_registered``: chips that only jobs use which may be stopped and
    run again are judged as in mode graceful, whatever the mode.
    """

    stop_timeout_ns: int = 60 * SECOND_NS
    heal_timeout_ns: int = 600 * SECOND_NS
    in_place_registered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration that changes a decision; all else of the configuration is not the core's.

    ``kernel_line_hold_ns``: so long a kernel line isolates a chip that its own driver reads and calls well.
    ``max_isolated_chips``: so many chips at most are isolated by repetition alone, 0 for no such limit.
    """

    mode: Mode = Mode.RESCHEDULING
    request_tolerance_ns: int = 60 * SECOND_NS
    business_tolerance_ns: int = 60 * SECOND_NS
    self_healing_ns: int = 15 * SECOND_NS
    once_hold_ns: int = 60 * SECOND_NS
    stale_after_ns: int = 30 * SECOND_NS
    kernel_line_hold_ns: int = 30 * SECOND_NS
    start_deadline_ns: int = 30 * SECOND_NS
    unknown_level: Level | None = None
    max_isolated_chips: int = 0
    reset: ResetSettings = field(default_factory=ResetSettings)
    public: PublicSettings = field(default_factory=PublicSettings)
    jobs: JobSettings = field(default_factory=JobSettings)


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
    relation: tuple[RelationRule, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    decoding: Decoding = field(default_factory=Decoding)
    sources: Mapping[str, SourceTraits] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)

    @property
    def raising(self) -> tuple[RaisingRule, ...]:
        return (*self.threshold, *self.counter)

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
