"""Which sources have lost events, as the kernel log says. Pure.

A library that knows only what came by events has then another picture than the driver. Another process asks
for all there is: the source's worker is renewed, at once and not when it would have asked for it by itself.
What user space wrote renews nothing, nor do lines of before this life: its workers began after them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from nodeagent.core.model import KERNEL_LOG, Input, Signal
from nodeagent.vendors import DRIVERS

EVENTS_LOST: Final = {
    traits.events_lost_code: source for source, traits in DRIVERS.items() if traits.events_lost_code
}
"""Code of a line of the kernel log -> the source that has lost events by it."""


def reported(inputs: Iterable[Input]) -> Iterator[tuple[str, str]]:
    """The name of each, and the code of the line that says so."""
    for given in inputs:
        if not isinstance(given, Signal) or given.source != KERNEL_LOG:
            continue
        if given.trusted and not given.backdated and (source := EVENTS_LOST.get(given.code)):
            yield source, given.code
