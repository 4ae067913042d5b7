"""Holds back the request to leave until a scheduler's bridge has taken note of why: drained before requeued.

Only for a job whose node or chip takes no new work: it could come back to the same node. Nothing waits for
longer than a moment for a bridge that is not there.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodeagent.core.model import JobView, Wanted
from nodeagent.store.consumers import Consumer

HOLD_LEAVE_S: Final = 10.0
LOOK_EACH_S: Final = 0.02
"""While a job is held back: no acknowledgement is announced here."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Held:
    seq: int
    until_s: float


class LeaveAfter:
    """``consumer`` gives what is kept of one, None for a name that never acknowledged anything; ``now_s`` is
    CLOCK_MONOTONIC.
    """

    def __init__(
        self, consumer: Callable[[str], Consumer | None], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._consumer = consumer
        self._now_s = now_s
        self._held: dict[str, _Held] = {}
        self._passed = set[str]()

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def holds_job(self, job: JobView, seq: int, consumer: str) -> bool:
        """Whether what is wanted is not to be sent yet. ``seq`` is the number of the newest event."""
        if job.wanted is not Wanted.LEAVE or not job.isolated:
            self.forget(job.name)
            return False
        return self.holds(job.name, seq, consumer)

    def holds(self, name: str, seq: int, consumer: str) -> bool:
        """``seq`` counts at the first time only: what comes later is not why it leaves."""
        if not consumer or name in self._passed:
            return False
        held = self._held.setdefault(name, _Held(seq, self._now_s() + HOLD_LEAVE_S))
        kept = self._consumer(consumer)
        if kept is not None and kept.seq >= held.seq:
            self._pass(name)
            return False
        if self._now_s() < held.until_s:
            return True
        self._pass(name)
        come = "no event" if kept is None else f"event {kept.seq}"
        log.warning(
            "job %s leaves before jobs.leave_after: consumer %s has acknowledged %s, not %d for %d s",
            name,
            consumer,
            come,
            held.seq,
            HOLD_LEAVE_S,
        )
        return False

    async def wait(self, name: str, seq: int, consumer: str) -> None:
        """As long as ``holds`` holds it."""
        while self.holds(name, seq, consumer):  # noqa: ASYNC110 # see LOOK_EACH_S
            await asyncio.sleep(LOOK_EACH_S)

    def forget(self, name: str) -> None:
        """The job leaves no more, or has left."""
        self._held.pop(name, None)
        self._passed.discard(name)

    def _pass(self, name: str) -> None:
        del self._held[name]
        self._passed.add(name)
