"""``Carried``, the input that holds a live cell, and ``Input``, the union of all inputs."""

from dataclasses import dataclass

from nodeagent.core.model.cells import Cell
from nodeagent.core.model.inputs import (
    ActionResult,
    ActionStarted,
    ActiveSet,
    BaselineSeen,
    CatalogChanged,
    Claims,
    CounterMark,
    DeviceGone,
    DeviceSeen,
    Edge,
    Operator,
    ProcessesListed,
    PublicFaults,
    ResetsRecorded,
    Signal,
    SourceAbsent,
    SourceBack,
    SourceLost,
    Started,
    TablesRejected,
    Tick,
)
from nodeagent.core.model.jobs import JobBegun, JobEnded, RunReported


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Compaction's input: one live cell, put back as it was."""

    cell: Cell


Input = (
    Signal
    | ActiveSet
    | ProcessesListed
    | Edge
    | CounterMark
    | DeviceSeen
    | BaselineSeen
    | DeviceGone
    | SourceLost
    | SourceBack
    | SourceAbsent
    | CatalogChanged
    | TablesRejected
    | Operator
    | Claims
    | PublicFaults
    | JobBegun
    | RunReported
    | JobEnded
    | ActionStarted
    | ActionResult
    | ResetsRecorded
    | Started
    | Carried
    | Tick
)
