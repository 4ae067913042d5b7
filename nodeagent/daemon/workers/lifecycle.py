"""The life of one worker process, as a table. No process is touched here.

                      hello                    asked to end, all late, or babbling
        starting ───────────────> ready ─────────────────────────────────┐
           │  │                     │                                    v
           │  │ no hello in time    │ all late, in D state     SIGTERM, grace, SIGKILL
           │  └─────────────────────│──────────────────────────────> killing
           │ no hello in time,      v                                    │
           └──────────────────> abandoned <──────────────────────────────┤ in D state, or
             in D state             │                                    │ outlives SIGKILL
                                    │ exits                              │ exits
           starting, ready: exits   v                                    │
           by itself ───────────> ended <────────────────────────────────┘

What follows for the source (``supervisor``): after *ready* or *starting* -> ended: ``worker_crashed``,
respawn with back-off. After *killing* -> ended: respawn with back-off. On *abandoned*: the pid is kept, and
**one** replacement is spawned that skips the suspect; if that one wedges too, no more. After *abandoned* ->
ended: respawn whole.

A process in D state (uninterruptible sleep, inside the driver) gets no signal: it could not act on
it, and it might leave the device unusable when at last it did.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class WorkerState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    KILLING = "killing"
    ABANDONED = "abandoned"
    ENDED = "ended"


class WorkerTrigger(StrEnum):
    HELLO = "hello"
    DISMISSED = "dismissed"
    """It has to go: it is late, it babbles, or it is to be replaced."""

    STUCK = "stuck"
    """It has to go and cannot: it is in D state."""

    EXITED = "exited"


TRANSITIONS: Final[Mapping[tuple[WorkerState, WorkerTrigger], WorkerState]] = MappingProxyType(
    {
        (WorkerState.STARTING, WorkerTrigger.HELLO): WorkerState.READY,
        (WorkerState.STARTING, WorkerTrigger.DISMISSED): WorkerState.KILLING,
        (WorkerState.STARTING, WorkerTrigger.STUCK): WorkerState.ABANDONED,
        (WorkerState.STARTING, WorkerTrigger.EXITED): WorkerState.ENDED,
        (WorkerState.READY, WorkerTrigger.DISMISSED): WorkerState.KILLING,
        (WorkerState.READY, WorkerTrigger.STUCK): WorkerState.ABANDONED,
        (WorkerState.READY, WorkerTrigger.EXITED): WorkerState.ENDED,
        (WorkerState.KILLING, WorkerTrigger.STUCK): WorkerState.ABANDONED,
        (WorkerState.KILLING, WorkerTrigger.EXITED): WorkerState.ENDED,
        (WorkerState.ABANDONED, WorkerTrigger.EXITED): WorkerState.ENDED,
    }
)


class IllegalWorkerTransition(Exception):
    """No such edge; the state stays as it was."""


def after(state: WorkerState, trigger: WorkerTrigger) -> WorkerState:
    """The state that follows. Raises ``IllegalTransition``."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalWorkerTransition(f"a worker that is {state} cannot take {trigger!r}") from None
