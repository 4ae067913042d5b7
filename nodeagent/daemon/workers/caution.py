"""What the ends of earlier workers mean for the next one: go carefully, and skip what ended them.

A record may be such that looking at it wedges or kills the worker, and it lies in the source for the next
one too. So a worker that ended unasked is followed by a careful one, which names each record of the history
before it looks at it. Should that end as well, the record it named last is the one: the next has to skip
it. So each record is met twice at most, and of many only the first one. A source that numbers no records
names none, and its workers are none the wiser.

It ends and starts no worker, and decides which ends were unasked as little.
"""

from nodeagent.wire import MAX_SKIPPED


class Caution:
    """What the workers of one source beware of. ``careful`` and ``skip`` are for the next worker."""

    def __init__(self) -> None:
        self.careful = False
        self.skip: tuple[int, ...] = ()

    def ended_unasked(self, looking_at: int | None) -> None:
        """A worker wedged or crashed; ``looking_at`` is the record that it named last, if it named any."""
        self.careful = True
        if looking_at is not None:
            self.skip = (*self.skip, looking_at)[-MAX_SKIPPED:]

    def accounted_for(self, cursor: int) -> None:
        """Up to this record all is reported: none of them is given to a worker again."""
        self.skip = tuple(record for record in self.skip if record > cursor)

    def passed(self) -> None:
        """A worker has come through all that lay in the source."""
        self.careful, self.skip = False, ()
