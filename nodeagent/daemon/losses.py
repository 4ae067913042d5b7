"""Which sources have lost events, as the kernel log tells. Pure.

A library that knows only what events told it has then another picture than the driver. Another process asks
for all there is: the source's worker is renewed, at once and not when it would have asked for it by itself.
What user space wrote renews nothing, nor do lines of before this life: its workers began after them.
"""

from collections.abc import Iterable, Iterator

from nodeagent.core.model import KERNEL_LOG, Input, Signal
from nodeagent.drivers import EVENTS_LOST


def told(inputs: Iterable[Input]) -> Iterator[tuple[str, str]]:
    """The name of each, and the code of the line that says so."""
    for given in inputs:
        if not isinstance(given, Signal) or given.source != KERNEL_LOG:
            continue
        if given.trusted and not given.backdated and (source := EVENTS_LOST.get(given.code)):
            yield source, given.code
