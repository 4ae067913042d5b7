"""What is given to a session. Frozen values; nothing here decides or does I/O.

Times are nanoseconds of CLOCK_BOOTTIME: they go on while the machine sleeps, and are the same line for a
supervisor that is started anew in the same boot.
"""

from dataclasses import dataclass
from enum import Enum

from nodeagent.job.model import Counts, Policy, Why, Wish


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
    """``acts`` is false where a confirmed one is only reported. ``since_s``: how long it has stood still."""

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
    """Somebody sent the supervisor, or the loop of a step, this signal: TERM or INT."""

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
