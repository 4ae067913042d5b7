"""What goes into a session, and what it orders. Frozen values; nothing here decides or does I/O.

Times are nanoseconds of CLOCK_BOOTTIME: they go on while the machine sleeps, and are the same line for a
supervisor that is started anew in the same boot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

SECOND_NS = 1_000_000_000


class Status(int, Enum):
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
    """What the daemon wants of the job. A state, not a message: it is said again after each connection."""

    RUN = "run"
    STOP = "stop"
    HOLD = "hold"
    """Do not run until it says ``run``."""

    LEAVE = "leave"


class Why(str, Enum):
    """Why a run is made: ``NODEAGENT_WHY``."""

    FIRST = "first"
    HEALED = "healed"
    SUSPENDED = "suspended"
    FAILED = "failed"
    PEER = "peer"
    ORDERED = "ordered"
    """By an operator."""


class Word(str, Enum):
    """What a supervisor says of a run."""

    STARTED = "started"
    STOPPED = "stopped"
    """As it was asked to: no process of the run is left."""

    EXITED = "exited"
    """By itself: no process of the run is left."""

    SUSPECTED = "suspected"
    SUSPENDED = "suspended"
    CLEARED = "cleared"
    UNKILLABLE = "unkillable"


class HangMode(str, Enum):
    OFF = "off"
    NOTIFY = "notify"
    RESTART = "restart"


# ---------------------------------------------------------------------- policy and counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be done to the job, of annotations, environment and flags together.

    With the defaults nothing is done: the job is only watched.

    ``in_place``: it may be stopped and run again for a chip that is repaired. ``yields``: also for a chip of
    another job, where both are reset together. ``placements``: how often it may be run elsewhere for a fault
    (``job-retry-num``), None where it may not. ``unconditional``: also where its command failed without a
    fault. ``in_place_retries``: runs here after failures without a fault, in a row without progress.
    ``hang_row``: hang restarts in a row without progress. ``refill``: progress gives all placements back.
    """

    kind: str = "training"
    in_place: bool = False
    yields: bool = False
    placements: int | None = None
    unconditional: bool = False
    refill: bool = False
    in_place_retries: int = 0
    hang: HangMode = HangMode.NOTIFY
    hang_row: int = 3
    hang_time_s: float = 1800.0
    grace_s: float = 20.0
    heal_timeout_s: float = 600.0
    verdict_wait_s: float = 5.0
    blame_s: float = 30.0
    need_daemon: bool = False
    in_step: bool = False
    strategy: str = ""
    """``subHealthyStrategy`` or ``recover-strategy``, as given: told to schedulers."""

    @property
    def only_watches(self) -> bool:
        """Nothing may be done to the job: its command runs as it would without a supervisor."""
        return not (
            self.in_place
            or self.placements is not None
            or self.in_place_retries > 0
            or self.hang is HangMode.RESTART
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What survives a placement. ``best`` is the highest checkpoint (or step) number ever seen, None: none.

    ``placements`` is how many were used in all, ``placements_in_row`` those since the last progress;
    ``retries`` and ``hangs`` are in a row without progress, ``signature`` is that of the last failure since.
    """

    schedule: int = 1
    placements: int = 0
    placements_in_row: int = 0
    retries: int = 0
    hangs: int = 0
    best: int | None = None
    signature: str = ""


# ---------------------------------------------------------------------- given to the session


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """``start_time`` in clock ticks since boot tells two processes apart that had one pid."""

    pid: int
    start_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """The supervisor has started. ``survivors`` are processes of a run that outlived an earlier
    supervisor.

    In a step of several nodes each run has a supervisor of its own: ``run`` is its number, ``executions`` is
    how often the command was begun before in this placement, and ``why`` why it is run now.
    """

    boot_id: str
    policy: Policy
    counts: Counts
    survivors: tuple[Process, ...] = ()
    run: int = 1
    executions: int = 0
    why: Why = Why.FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the daemon wants, for which run, and why. ``chip`` and ``code`` name the fault, if there is one.

    ``isolated``: the node, or a chip of the job, is not to be used again. ``handling``: the strictest on the
    job's chips and the node now.
    """

    wish: Wish
    run: int
    why: str = ""
    chip: str = ""
    code: str = ""
    isolated: bool = False
    handling: str = "NONE"
    by_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLost:
    """The daemon cannot be asked, or never could."""

    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBack:
    """The daemon answers; what it wants follows."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The command of that run has begun."""

    run: int
    process: Process


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """The command could not be begun: the errno, and in words."""

    run: int
    error: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is known of how a command ended: by ``status``, or by ``signal``.

    ``error_type`` and ``message`` are out of the error file of torch, ``tail`` is the end of what the run
    wrote to its standard error, where that is a file.
    """

    status: int | None = None
    signal: int | None = None
    error_type: str = ""
    message: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The command has ended; others of its tree may live on."""

    run: int
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """No process of the run is left."""

    run: int


class Hang(str, Enum):
    """What is found about a run that seems to stand still."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"
    CLEARED = "cleared"
    """It goes on."""

    DROPPED = "dropped"
    """It could not be followed any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hung:
    """``acts`` is false where a confirmed one is only told. ``since_s``: how long it has stood still."""

    run: int
    what: Hang
    why: str
    since_s: float
    acts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The evidence of a hang lies there; ``path`` is "" where there is none."""

    run: int
    path: str
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """The number of the newest checkpoint, or step: greater than any that was given in this run."""

    run: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """Somebody sent the supervisor this signal: TERM or INT."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Only time passes."""


Given = (
    Began
    | Wanted
    | LinkLost
    | LinkBack
    | Ran
    | NotRun
    | Exited
    | Emptied
    | Hung
    | Gathered
    | Progressed
    | Signalled
    | Tick
)

# ---------------------------------------------------------------------- ordered by the session


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Run the command, with these variables besides those that it has."""

    run: int
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """CONT and that signal (TERM) to the command's group. ``alone``: only the signal, and only to the
    command, as if it had been called without a supervisor.
    """

    run: int
    number: int = 15
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """KILL to every process of the tree, again and again until it is empty."""

    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather:
    """Gather the evidence of a hang, in at most so many seconds. ``run_ends``: the run is stopped after it,
    so that its processes may be sent what ends them (ABRT, for their stacks). Else nothing may disturb it.
    """

    run: int
    within_s: float = 15.0
    run_ends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Tell the daemon. ``number`` grows by one with each, also over restarts of the supervisor."""

    number: int
    run: int
    what: str
    why: str = ""
    status: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Put the counts where the next placement finds them."""

    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """One line for people, on the standard error."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """End with that status. The daemon was told by the report before.

    What the other nodes of a step are to know: ``fault``: the daemon's word on the chips or the node has
    decided; ``next_why`` and ``pause_s``: of the run that is wanted in place of this one.
    """

    status: int
    why: str
    fault: bool = False
    next_why: Why = Why.FAILED
    pause_s: float = 0.0


Order = Start | Terminate | Kill | Gather | Report | Keep | Tell | Leave
