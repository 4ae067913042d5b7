"""What all parts of a supervisor share. Values only; nothing here decides or does I/O.

Exit statuses, the two messages about a run (``RunRequest`` from the daemon, ``RunReport`` to it), the policy
of a job, its counts, what is known of a failure, and the variables that the environment of a run gets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from nodeagent.job.role import SupervisorRole, role_of

SECOND_NS = 1_000_000_000


class ExitStatus(int, Enum):
    """Exit statuses of ``job run`` that are not the command's own; besides 128 + N of a signal."""

    DONE = 0
    RESCHEDULE = 75
    """Run the job elsewhere, or here again: this node is well."""

    BAD_POLICY = 78
    RESTART_TOGETHER = 85
    """All nodes of the job are to run it again, each in place."""

    RESCHEDULE_ISOLATED = 86
    """Run the job elsewhere: this node, or a chip of the job, is taken out of service."""

    GIVEN_UP = 87
    """Do not run the job again: it would fail again."""


class Wish(str, Enum):
    """What the daemon wants of the job. A state, not a message: it is sent again after each connection."""

    RUN = "run"
    STOP = "stop"
    HOLD = "hold"
    """Do not run before ``run`` is wanted."""

    LEAVE = "leave"


class RunReason(str, Enum):
    """Why a run is made: ``NODEAGENT_WHY``."""

    FIRST = "first"
    HEALED = "healed"
    SUSPENDED = "suspended"
    """The run before it hung, as the supervisor had confirmed. It has nothing to do with SIGSTOP."""

    FAILED = "failed"
    PEER = "peer"
    ORDERED = "ordered"
    """An operator ordered it."""


class RunEvent(str, Enum):
    """What has happened to a run."""

    STARTED = "started"
    STOPPED = "stopped"
    """It ended as it was asked to: no process of the run is left."""

    EXITED = "exited"
    """It ended by itself: no process of the run is left."""

    SUSPECTED = "suspected"
    SUSPENDED = "suspended"
    CLEARED = "cleared"
    SLOW = "slow"
    """A rank holds up the others."""

    KEEPS_UP = "keeps_up"
    """A rank that was slow is so no longer."""

    UNKILLABLE = "unkillable"


# ---------------------------------------------------------------------- the two messages about a run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the daemon wants of the job, for which run, and why. ``chip`` and ``code`` name the fault, if
    there is one.

    ``isolated``: the node, or a chip of the job, must not be used again. ``handling``: the strictest handling
    among the job's chips and the node now.
    """

    wish: Wish
    run: int
    why: str = ""
    chip: str = ""
    code: str = ""
    isolated: bool = False
    handling: str = "NONE"
    by_operator: bool = False
    handling_chip: str = ""
    handling_code: str = ""
    """Of the fault that ``handling`` follows from."""

    sub_health: str = ""
    """A fault at SubHealthFault on a chip of the job that came after the job had begun, as a text: the chip
    and its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What has happened to a run. ``number`` grows by one with each report, also when the supervisor is
    started again.
    """

    number: int
    run: int
    what: RunEvent
    why: str = ""
    status: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------------- policy and counts


class HangMode(str, Enum):
    """What a hang leads to."""

    OFF = "off"
    NOTIFY = "notify"
    RESTART = "restart"


class SubHealthyStrategy(str, Enum):
    """What a fault at SubHealthFault leads to: MindCluster's ``subHealthyStrategy``."""

    IGNORE = "ignore"
    GRACE_EXIT = "graceExit"
    FORCE_EXIT = "forceExit"
    HOT_SWITCH = "hotSwitch"
    """Known, and not done here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be done to the job, of annotations, environment and flags together.

    With the defaults nothing is done: the job is only watched.

    ``in_place``: it may be stopped and run again for a chip that is repaired. ``yields``: also for a chip of
    another job, where both are reset together. ``placements``: how often it may be run elsewhere for a fault
    (``job-retry-num``), None where it may not. ``unconditional``: also where its command failed without a
    fault. ``in_place_retries``: runs here after failures without a fault, in a row without progress.
    ``error_row``: failures in a row with one error that is of no known kind. ``node_replacements``: how many
    nodes a step of several may replace in all, None: as many as there are spares.
    ``hang_row``: hang restarts in a row without progress. ``start_time_s``: how long a run may take until it
    is stable, None: known from the runs before. ``refill``: progress gives all placements back.
    ``need_paths``: what has to answer within ``path_time_s`` before each run. ``memory_wait_s``: how long a
    run waits at most until the memory of its chips is free.
    """

    kind: str = "training"
    in_place: bool = False
    yields: bool = False
    placements: int | None = None
    unconditional: bool = False
    refill: bool = False
    in_place_retries: int = 0
    error_row: int = 4
    node_replacements: int | None = None
    hang: HangMode = HangMode.NOTIFY
    hang_row: int = 3
    hang_time_s: float = 1800.0
    start_time_s: float | None = None
    grace_s: float = 20.0
    heal_timeout_s: float = 600.0
    verdict_wait_s: float = 5.0
    blame_s: float = 30.0
    need_daemon: bool = False
    sub_health: SubHealthyStrategy = SubHealthyStrategy.IGNORE
    need_paths: tuple[str, ...] = ()
    path_time_s: float = 10.0
    memory_wait_s: float = 50.0
    in_step: bool = False
    strategy: str = ""
    """``subHealthyStrategy`` or ``recover-strategy``, as given: reported to schedulers."""

    @property
    def role(self) -> SupervisorRole:
        acts = (
            self.in_place
            or self.placements is not None
            or self.in_place_retries > 0
            or self.hang is HangMode.RESTART
        )
        return role_of(acts=acts, in_step=self.in_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """How long runs take until they are stable: the longest so far. ``by_steps``: known by the steps that the
    program has reported, else by its chips. ``step_s``: the slowest of the last steps of the newest run that
    has reported any, None: none has.
    """

    seconds: float
    by_steps: bool = False
    step_s: float | None = None

    def longest(self, other: "RunStart | None") -> "RunStart":
        if other is None:
            return self
        by_steps = self.by_steps or other.by_steps
        step_s = other.step_s if self.step_s is None else self.step_s
        return RunStart(seconds=max(self.seconds, other.seconds), by_steps=by_steps, step_s=step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What survives a placement. ``best`` is the highest checkpoint (or step) number ever seen, None: none.
    ``start``: how long runs that became stable took for it, None: none has.

    ``placements`` is how many were used in all, ``placements_in_row`` those since the last progress;
    ``retries`` and ``hangs`` are in a row without progress, ``signature`` is that of the last failure since,
    which came ``same_errors`` times in a row. ``replacements`` is how many nodes were replaced in all.
    """

    schedule: int = 1
    placements: int = 0
    placements_in_row: int = 0
    retries: int = 0
    hangs: int = 0
    best: int | None = None
    signature: str = ""
    same_errors: int = 0
    replacements: int = 0
    start: RunStart | None = None


# ---------------------------------------------------------------------- the environment of a run

SCHEDULE_COUNT: Final = "MA_SCHEDULE_CNT"
PROCESS_COUNT: Final = "MA_PROC_START_CNT"
"""ModelArts' names ("Recovering a Training Job"): placements, and executions in this placement."""

HANG_DETECT_TIME: Final = "MA_HANG_DETECT_TIME"
POLICY_PREFIX: Final = "NODEAGENT_JOB_"
POLICY_VARIABLES: Final = (POLICY_PREFIX, HANG_DETECT_TIME)
"""Prefixes of the variables that set the policy of the job."""


def variables_of_run(
    *, run: int, execution: int, why: RunReason, counts: Counts, job: str = ""
) -> Mapping[str, str]:
    """Set at each run. ``execution``: how often the command is begun in this placement, with this time."""
    variables = {
        PROCESS_COUNT: str(execution),
        SCHEDULE_COUNT: str(counts.schedule),
        "NODEAGENT_RUN": str(run),
        "NODEAGENT_WHY": why.value,
    }
    return {**variables, "NODEAGENT_JOB": job} if job else variables


# ---------------------------------------------------------------------- failures


class FailureKind(str, Enum):
    """What kind of failure it is. ``transient``: it may well pass by itself."""

    USER = "user"
    HARDWARE = "hardware"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """``signature`` is "" if nothing distinguishes two failures; ``line`` is what
    people are shown.
    """

    kind: FailureKind = FailureKind.UNKNOWN
    signature: str = ""
    line: str = ""
