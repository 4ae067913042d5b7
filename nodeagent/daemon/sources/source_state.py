"""Whether a source is observed, as a table: all that can happen to it in each state. It emits nothing.

    state      opened     read       failed    released  not found
    opening    opening    observing  unopened  let_go    absent
    absent     opening    observing  unopened  let_go    absent
    unopened   unopened   observing  unopened  unopened  absent
    observing  observing  observing  lost      let_go    lost
    lost       lost       observing  lost      lost      lost
    let_go     let_go     observing  lost      let_go    lost

What is emitted (``observation``): ``SourceBack`` with each first complete read; ``SourceLost`` on the way
into *lost* or *unopened*, and each time it is *let_go*; ``SourceAbsent`` on the way into *absent*. A source
that is lost stays so while its driver is opened again and again; only a complete read brings it back. What
was let go and cannot be read afterwards is lost.
A source that was once observed or let go is never *absent*: that its driver is missing is a loss.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SourceState(StrEnum):
    OPENING = "opening"
    """It was not read completely yet, nor has a read failed."""

    ABSENT = "absent"
    """There is nothing of it here, as the last look for it said."""

    UNOPENED = "unopened"
    """Lost before it was ever observed: its driver does not open, or cannot be read."""

    OBSERVING = "observing"
    LOST = "lost"
    LET_GO = "let_go"
    """It is not observed on purpose."""


class SourceTrigger(StrEnum):
    OPENED = "opened"
    """A worker has its driver open, and reads it for the first time."""

    READ = "read"
    """That first read is complete."""

    FAILED = "failed"
    """It cannot be observed: its worker ended or has to, its driver does not open, no device can be read."""

    RELEASED = "released"
    """Its worker was made to let go of the driver."""

    NOT_FOUND = "not found"
    """There is no driver to open, and none is expected."""


def _row(state: SourceState, *after: SourceState) -> Mapping[tuple[SourceState, SourceTrigger], SourceState]:
    return {(state, trigger): then for trigger, then in zip(SourceTrigger, after, strict=True)}


_OPENING, _ABSENT, _UNOPENED, _OBSERVING, _LOST, _LET_GO = SourceState

TRANSITIONS: Final[Mapping[tuple[SourceState, SourceTrigger], SourceState]] = MappingProxyType(
    {
        **_row(_OPENING, _OPENING, _OBSERVING, _UNOPENED, _LET_GO, _ABSENT),
        **_row(_ABSENT, _OPENING, _OBSERVING, _UNOPENED, _LET_GO, _ABSENT),
        **_row(_UNOPENED, _UNOPENED, _OBSERVING, _UNOPENED, _UNOPENED, _ABSENT),
        **_row(_OBSERVING, _OBSERVING, _OBSERVING, _LOST, _LET_GO, _LOST),
        **_row(_LOST, _LOST, _OBSERVING, _LOST, _LOST, _LOST),
        **_row(_LET_GO, _LET_GO, _OBSERVING, _LOST, _LET_GO, _LOST),
    }
)
