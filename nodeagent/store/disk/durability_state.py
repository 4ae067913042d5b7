"""Whether commits reach the disk, as a table: all that can happen in each state. It writes nothing.

    state           opened   failed          unreadable  rejoined  earlier life    closed
    opening         durable  in_memory       unread      -         -               closed
    durable         -        in_memory       -           -         -               closed
    in_memory       -        in_memory       -           durable   -               closed
    unread          -        unread          -           durable   restart_needed  closed
    restart_needed  -        restart_needed  -           -         -               closed
    closed          -        closed          -           -         -               closed

Each *failed* begins a new epoch and puts what is pending into the backlog, whatever the state. A dash cannot
happen: it would be a defect, and ``after`` raises ``IllegalTransition``.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class DurabilityState(StrEnum):
    OPENING = "opening"
    """The file is not open yet."""

    DURABLE = "durable"
    IN_MEMORY = "in_memory"
    """Commits go into the backlog until the disk takes it."""

    UNREAD = "unread"
    """As *in_memory*, and the start could not read what the disk held before."""

    RESTART_NEEDED = "restart_needed"
    """The disk works again and holds an earlier life, which only a new process can load. It is left alone."""

    CLOSED = "closed"


class DurabilityTrigger(StrEnum):
    OPENED = "opened"
    """The last life was read, and the disk took a write."""

    FAILED = "failed"
    """A write failed or was late, the file is gone or damaged, or the disk only allows reads at the start."""

    UNREADABLE = "unreadable"
    """At the start: nothing of the last life could be read."""

    REJOINED = "rejoined"
    """The backlog and the epoch are on the disk."""

    EARLIER_LIFE = "earlier life"
    """The disk answers, and holds what the start could not read."""

    CLOSED = "closed"


class IllegalDurabilityTransition(Exception):
    """The table has no such transition; the state is unchanged."""


_S, _T = DurabilityState, DurabilityTrigger

TRANSITIONS: Final[Mapping[tuple[DurabilityState, DurabilityTrigger], DurabilityState]] = MappingProxyType(
    {
        (_S.OPENING, _T.OPENED): _S.DURABLE,
        (_S.OPENING, _T.FAILED): _S.IN_MEMORY,
        (_S.OPENING, _T.UNREADABLE): _S.UNREAD,
        (_S.DURABLE, _T.FAILED): _S.IN_MEMORY,
        (_S.IN_MEMORY, _T.FAILED): _S.IN_MEMORY,
        (_S.IN_MEMORY, _T.REJOINED): _S.DURABLE,
        (_S.UNREAD, _T.FAILED): _S.UNREAD,
        (_S.UNREAD, _T.REJOINED): _S.DURABLE,
        (_S.UNREAD, _T.EARLIER_LIFE): _S.RESTART_NEEDED,
        (_S.RESTART_NEEDED, _T.FAILED): _S.RESTART_NEEDED,
        (_S.CLOSED, _T.FAILED): _S.CLOSED,
        **{(state, _T.CLOSED): _S.CLOSED for state in DurabilityState},
    }
)


def after(state: DurabilityState, trigger: DurabilityTrigger) -> DurabilityState:
    """The state that follows. Raises ``IllegalTransition``."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalDurabilityTransition(f"a store that is {state} cannot take {trigger!r}") from None
