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


class State(StrEnum):
    STARTING = "starting"
    READY = "ready"
    KILLING = "killing"
    ABANDONED = "abandoned"
    ENDED = "ended"


class Trigger(StrEnum):
    HELLO = "hello"
    DISMISSED = "dismissed"
    """It has to go: it is late, it babbles, or it is to be replaced."""

    STUCK = "stuck"
    """It has to go and cannot: it is in D state."""

    EXITED = "exited"


TRANSITIONS: Final[Mapping[tuple[State, Trigger], State]] = MappingProxyType(
    {
        (State.STARTING, Trigger.HELLO): State.READY,
        (State.STARTING, Trigger.DISMISSED): State.KILLING,
        (State.STARTING, Trigger.STUCK): State.ABANDONED,
        (State.STARTING, Trigger.EXITED): State.ENDED,
        (State.READY, Trigger.DISMISSED): State.KILLING,
        (State.READY, Trigger.STUCK): State.ABANDONED,
        (State.READY, Trigger.EXITED): State.ENDED,
        (State.KILLING, Trigger.STUCK): State.ABANDONED,
        (State.KILLING, Trigger.EXITED): State.ENDED,
        (State.ABANDONED, Trigger.EXITED): State.ENDED,
    }
)


class IllegalTransition(Exception):
    """No such edge; the state stays as it was."""


def after(state: State, trigger: Trigger) -> State:
    """The state that follows. Raises ``IllegalTransition``."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransition(f"a worker that is {state} cannot take {trigger!r}") from None
