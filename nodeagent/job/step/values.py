"""Inputs and effects of the loop of a step. Frozen values; nothing here decides or does I/O.

``Signalled``, ``KeepCounts``, ``Print`` and ``Leave`` are those of a session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.job.model import Counts, RunReason
from nodeagent.job.session.values import KeepCounts, Leave, Print, Signalled


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """How a run has ended on one node: the status and the reason with which its supervisor exited.

    ``fault``: because of the chips or the node. ``signalled``: the supervisor was ended,
    and nothing else is known. ``next_why`` and ``pause_s`` are of the run that status 85 (RESTART_TOGETHER)
    asks for. ``waited_s``: how long the command was not allowed to begin; 0 once it has begun. ``placements``
    is the policy's limit.
    """

    node: str
    run: int
    status: int
    why: str = ""
    fault: bool = False
    signalled: bool = False
    progressed: bool = False
    next_why: RunReason = RunReason.FAILED
    pause_s: float = 0.0
    waited_s: float = 0.0
    placements: int | None = None
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One run of the command. ``execution``: the number of this run within the placement, from 1.

    ``whys``: why there is this run, by node. ``waited_s``: how long a node that never began in the runs
    before was kept waiting, by node.
    """

    run: int
    execution: int
    nodes: tuple[str, ...]
    whys: Mapping[str, RunReason] = field(default_factory=dict)
    waited_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """What the submitter wants. ``nodes`` None: all that the job has. ``at_least`` None: as many as
    ``nodes``.

    ``reruns``: the command may be run again where a node was lost. ``placements`` and ``replacements`` (of
    nodes, by spares) are the policy's limits, as far as they are known here.
    """

    nodes: int | None = None
    at_least: int | None = None
    reruns: bool = False
    placements: int | None = None
    replacements: int | None = None


# ---------------------------------------------------------------------- given


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBegan:
    """``nodes`` are those of the allocation; ``first_run`` is a number that no run of the job has yet."""

    wish: StepOptions
    nodes: tuple[str, ...]
    first_run: int
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """The scheduler's answer: the nodes that the job has now. ``ends``: it is being ended."""

    nodes: tuple[str, ...]
    ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded:
    """The scheduler's step is over. ``status`` is that of its starter, which shows nothing of the job.

    ``nodes`` are those that the job still has, and ``ends``: it is being ended; as ``Allocated``.
    """

    run: int
    status: int
    outcomes: Mapping[str, NodeOutcome]
    nodes: tuple[str, ...]
    ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """The pause is over."""


StepInput = StepBegan | Allocated | StepEnded | Signalled | Waited

# ---------------------------------------------------------------------- ordered


@dataclass(frozen=True, slots=True, kw_only=True)
class AskScheduler:
    """Ask the scheduler which nodes the job has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRun:
    """Put the plan where all nodes see it, and run it."""

    plan: RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRun:
    """End the scheduler's step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    seconds: float


StepEffect = AskScheduler | StartRun | EndRun | Wait | KeepCounts | Print | Leave
