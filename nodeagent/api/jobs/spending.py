"""What one supervisor leaves on the disk, against what it may: a budget in bytes of its user.

Beyond it nothing is kept that only tells something; what moves a job is taken without its texts, and waits.
A job is never lost for that: a chip may wait for what its supervisor says.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final

from nodeagent.api.jobs import limits
from nodeagent.api.jobs.shared import Share
from nodeagent.core.model import JobSaid, JobWord

TELLS_ONLY: Final = frozenset({JobWord.SUSPECTED, JobWord.SUSPENDED, JobWord.CLEARED})
"""They move no job."""

log = logging.getLogger(__name__)


class Spending:
    """``who`` answers for the job, and is whom limits count."""

    def __init__(self, share: Share, who: str) -> None:
        self._share = share
        self._who = who

    async def pay(self, *texts: str) -> None:
        """For an input that moves the job, of which the supervisor chose these texts."""
        size = size_of(*texts)
        if not self._share.bytes.affords(self._who, size):
            await self._owe(size)

    async def pay_for(self, said: JobSaid) -> JobSaid | None:
        """As much of it as there are bytes for, None for nothing."""
        if self._share.bytes.affords(self._who, size_of(said.why, *said.evidence, *said.evidence.values())):
            return said
        if said.what in TELLS_ONLY:
            self._note()
            return None
        await self._owe(size_of())
        return replace(said, why="", evidence={})

    async def _owe(self, size: int) -> None:
        self._note()
        await asyncio.sleep(min(self._share.bytes.spend(self._who, size), limits.MAX_WAIT_S))

    def _note(self) -> None:
        if self._share.notes.admit() is not None:
            log.warning(
                "jobs.socket: %s has left as much on the disk as it may for now: what moves its jobs is slow,"
                " and what they tell besides is not kept",
                self._who,
            )


def size_of(*texts: str) -> int:
    """What an input with its event takes on the disk, in bytes."""
    return limits.INPUT_BYTES + limits.TEXT_COPIES * sum(len(text.encode()) for text in texts)
