"""Calls that were refused several times in a row are made in slow rounds only, until one answers.

The vendor's library writes a line to /var/log/nputools_*.log for each call that it answers by an error
(``gplog``), so that what refuses for days, asked each second, fills the log. It makes no call.
"""

from collections.abc import Hashable
from typing import Final

REFUSED_AFTER: Final = 3
"""Once, or twice, may be a glitch."""


class Refusals:
    """The calls that one chip refuses; a call is whatever its caller knows it by."""

    def __init__(self) -> None:
        self._in_a_row: dict[Hashable, int] = {}

    def asks(self, call: Hashable, *, slow_round: bool) -> bool:
        """Whether it is to be made now."""
        return slow_round or self._in_a_row.get(call, 0) < REFUSED_AFTER

    def note(self, call: Hashable, *, refused: bool) -> None:
        """Note how the call was answered."""
        if refused:
            self._in_a_row[call] = self._in_a_row.get(call, 0) + 1
        else:
            self._in_a_row.pop(call, None)

    def forget(self) -> None:
        """Forget all refusals: the chip was away."""
        self._in_a_row.clear()
