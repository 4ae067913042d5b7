"""What each level asks for: how levels rank, and the verdict and handling of each with time, by the mode.

It knows no device and no time: which phase a condition is in is an argument.
"""

from collections.abc import Iterable

from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.core.model import CHIP_KINDS, Handling, Kind, Level, Verdict

PRECEDENCE: dict[Level, int] = {
    level: rank
    for rank, level in enumerate(
        (
            Level.NOT_HANDLE,
            Level.SUB_HEALTH,
            Level.RESTART_REQUEST,
            Level.RESTART_REQUEST_FAULT,
            Level.RESTART_BUSINESS,
            Level.FREE_RESTART_NPU,
            Level.RESTART_NPU,
            Level.PRE_SEPARATE_NPU,
            Level.PRE_SEPARATE_FAULT,
            Level.RESET_FAULT,
            Level.SEPARATE_NPU,
            Level.SEPARATE_FAULT,
            Level.MANUALLY_SEPARATE_NPU,
        )
    )
}
"""The vendor's order of display. Within each kind's set it is that kind's order."""

RESET_LEVELS = frozenset(
    {Level.RESTART_REQUEST, Level.RESTART_BUSINESS, Level.FREE_RESTART_NPU, Level.RESTART_NPU}
)
"""Those that a reset ends, at once or when what comes before it did not help."""

SEPARATING_LEVELS = frozenset({Level.SEPARATE_NPU, Level.MANUALLY_SEPARATE_NPU})
"""Those that take a chip out of service until a person or the release time returns it."""

JOB_LEVELS = frozenset({Level.RESTART_REQUEST, Level.RESTART_BUSINESS})
"""Those that first of all restart what ran on the chip."""

BELOW_RESET = JOB_LEVELS | {Level.NOT_HANDLE, Level.SUB_HEALTH}
"""Those that ask for no reset by themselves."""

VERDICT_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
HANDLING_RANK = {handling: rank for rank, handling in enumerate(Handling)}

Stance = tuple[Verdict, Handling]
Phases = tuple[tuple[int | None, Stance], ...]

FREE: Stance = (Verdict.ALLOW, Handling.NONE)
"""It asks for nothing."""
_STRATEGY: Stance = (Verdict.ALLOW, Handling.JOB_STRATEGY)
DRAIN: Stance = (Verdict.NO_NEW_JOBS, Handling.NONE)
"""Running work continues, and no more of it comes."""
_RERUN: Stance = (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST)
_OUT: Stance = (Verdict.ISOLATE, Handling.RESCHEDULE)
WHEN_IDLE: Stance = (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE)
"""Running work continues; no more of it comes, and once the chip is idle it is reset."""
_RESET_NOW: Stance = (Verdict.ISOLATE, Handling.STOP_RESET_RESTART)

_SAME_IN_BOTH: dict[Level, Stance] = {
    Level.NOT_HANDLE: FREE,
    Level.SUB_HEALTH: _STRATEGY,
    Level.PRE_SEPARATE_NPU: DRAIN,
    Level.PRE_SEPARATE_FAULT: DRAIN,
    Level.SEPARATE_NPU: _OUT,
    Level.MANUALLY_SEPARATE_NPU: _OUT,
    Level.SEPARATE_FAULT: _OUT,
    Level.RESET_FAULT: _OUT,
}
_RESCHEDULING: dict[Level, Stance] = {
    Level.RESTART_BUSINESS: _OUT,
    Level.FREE_RESTART_NPU: _OUT,
    Level.RESTART_NPU: _OUT,
    Level.RESTART_REQUEST_FAULT: _OUT,
}
_GRACEFUL: dict[Level, Stance] = {
    Level.FREE_RESTART_NPU: WHEN_IDLE,
    Level.RESTART_NPU: _RESET_NOW,
    Level.RESTART_REQUEST_FAULT: _RERUN,
}


def stricter(one: Level, other: Level) -> Level:
    return one if PRECEDENCE[one] >= PRECEDENCE[other] else other


def phases(level: Level, settings: Settings) -> Phases:
    """The stances a level takes with time: each with its end, ns after the level began, the last without.

    Most levels have one phase. A phase of length zero is left out.
    """
    graceful = settings.mode is Mode.GRACEFUL
    if level is Level.RESTART_REQUEST:
        steps: Phases = (
            (settings.request_tolerance_ns, _RERUN),
            (None, _RESET_NOW if graceful else _OUT),
        )
    elif level is Level.RESTART_BUSINESS and graceful:
        steps = (
            (settings.self_healing_ns, DRAIN),
            (settings.business_tolerance_ns, (Verdict.NO_NEW_JOBS, Handling.RESTART_JOB)),
            (None, _RESET_NOW),
        )
    else:
        by_mode = _GRACEFUL if graceful else _RESCHEDULING
        steps = ((None, _SAME_IN_BOTH.get(level) or by_mode[level]),)
    return tuple(step for step in steps if step[0] != 0)


def stance(level: Level, phase: int, settings: Settings) -> Stance:
    steps = phases(level, settings)
    return steps[min(phase, len(steps) - 1)][1]


def of_job_stance(kind: Kind, *, rescheduling: bool) -> Stance:
    """The stance of a fault that only restarts its job, such as an application fault, on a device of that
    kind. The job of a chip restarts, from the third time on it moves; the chip stays in use. On the node it
    is not known whose program failed, and all others are well: the job that the fault hit ends by itself.
    """
    if kind not in CHIP_KINDS:
        return FREE
    return Verdict.ALLOW, Handling.RESCHEDULE if rescheduling else Handling.RESTART_JOB


def strictest(handlings: Iterable[Handling]) -> Handling:
    return max(handlings, key=HANDLING_RANK.__getitem__, default=Handling.NONE)


def milder(one: Level, other: Level) -> Level:
    return one if PRECEDENCE[one] <= PRECEDENCE[other] else other
