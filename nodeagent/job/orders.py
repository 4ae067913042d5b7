"""What a session orders. Frozen values; nothing here decides or does I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.job.model import Counts, Why, Word


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
    """Report to the daemon. ``number`` grows by one with each, also over restarts of the supervisor."""

    number: int
    run: int
    what: Word
    why: str = ""
    status: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Put the counts where the next placement, or the next run of a step, finds them."""

    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """Print one line for people on the standard error."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """End with that status. The daemon knows of it by the report before.

    What the other nodes of a step are to know: ``fault``: the daemon's word on the chips or the node has
    decided; ``next_why`` and ``pause_s``: of the run that is wanted in place of this one.
    """

    status: int
    why: str
    fault: bool = False
    next_why: Why = Why.FAILED
    pause_s: float = 0.0


Order = Start | Terminate | Kill | Gather | Report | Keep | Print | Leave
