"""Inputs and effects of a session. Frozen values; nothing here decides or does I/O.

Times are nanoseconds of CLOCK_BOOTTIME: it goes on while the machine sleeps, and is the same clock for a
supervisor that is started again in the same boot. ``RunRequest`` (an input) and ``RunReport`` (an effect) are
also messages of the daemon's socket (``lines``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from nodeagent.job.model import Counts, Policy, RunReason, RunReport, RunRequest, RunStart


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """``start_time`` in clock ticks since boot distinguishes two processes that had one pid."""

    pid: int
    start_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBegan:
    """The supervisor has started. ``survivors`` are processes of a run that outlived an earlier
    supervisor.

    In a step of several nodes each run has a supervisor of its own: ``run`` is its number, ``executions`` is
    how often the command was begun before in this placement, and ``why`` why it is run now.
    """

    boot_id: str
    policy: Policy
    counts: Counts
    survivors: tuple[ProcessId, ...] = ()
    run: int = 1
    executions: int = 0
    why: RunReason = RunReason.FIRST


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
    process: ProcessId


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """The command could not be started: the errno, and the reason as a text."""

    run: int
    error: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNotReady:
    """The command of that run is not started yet: ``why`` names what it needs. ``is_of_chips``: a port of its
    chips is down, and the storage answers.
    """

    run: int
    why: str
    is_of_chips: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledOff:
    """The run was to end before its command was started."""

    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
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
class CommandExited:
    """The command has ended; others of its tree may live on."""

    run: int
    failure: RunFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """No process of the run is left."""

    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """The run is stable. ``start``: how long runs take until they are."""

    run: int
    start: RunStart


class HangStage(str, Enum):
    """What is found about a run that seems to stand still."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"
    CLEARED = "cleared"
    """It goes on."""

    DROPPED = "dropped"
    """It could not be followed any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hung:
    """``acts`` is false where a confirmed one is only reported. ``since_s``: how long it has stood still."""

    run: int
    what: HangStage
    why: str
    since_s: float
    acts: bool = True


class SlowStage(str, Enum):
    FOUND = "found"
    ENDED = "ended"
    """It keeps up with its peers again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowed:
    """A rank, or a chip, holds up the others of the run. ``who`` names it: "rank 2", or the chip's name.

    ``evidence`` has what was measured, as texts: rank, chip, score, compute_s, differs.
    """

    run: int
    what: SlowStage
    who: str
    why: str
    evidence: Mapping[str, str] = field(default_factory=dict)


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
    is_checkpoint: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """Somebody sent the supervisor, or the loop of a step, this signal: TERM or INT."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTick:
    """Only time passes."""


SessionInput = (
    SessionBegan
    | RunRequest
    | LinkLost
    | LinkBack
    | Ran
    | NotRun
    | RunNotReady
    | CalledOff
    | CommandExited
    | Emptied
    | Armed
    | Hung
    | Slowed
    | Gathered
    | Progressed
    | Signalled
    | SessionTick
)


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
class KeepCounts:
    """Put the counts where the next placement, or the next run of a step, finds them."""

    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """Print one line for people on the standard error."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """End with that status. The daemon knows of it by the report before.

    For the other nodes of a step: ``fault``: a request of the daemon, or the state of the hardware, has
    decided; ``next_why`` and ``pause_s``: of the run that is wanted in place of this one.
    """

    status: int
    why: str
    fault: bool = False
    next_why: RunReason = RunReason.FAILED
    pause_s: float = 0.0


SessionEffect = Start | Terminate | Kill | Gather | RunReport | KeepCounts | Print | Leave
