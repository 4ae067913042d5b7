"""Writes the audit log: who asked for what, and what came of it. Nobody fills it by being refused."""

import logging
import time
from typing import Final

from nodeagent.api.access.credentials import Caller
from nodeagent.api.refusal import RefusalLimit
from nodeagent.store.ledger import Ledger

_MAX_RESULT_LENGTH: Final = 1024

_log = logging.getLogger(__name__)


class AuditLog:
    """One log for all sockets."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._refusals = RefusalLimit()

    async def note(self, who: str, method: str, target: str, result: str) -> None:
        _log.info("audit: %s asked for %s %s: %s", who, method, target, result)
        await self._ledger.audit(time.time_ns(), who, method, target, result[:_MAX_RESULT_LENGTH])

    async def note_refusal(self, caller: Caller, method: str, target: str, why: str) -> None:
        """Logs some of many refusals: somebody may not ask, or a program asks again and again."""
        unwritten = self._refusals.admit()
        if unwritten is not None:
            before = f" ({unwritten} more before it were not written)" if unwritten else ""
            await self.note(caller.who, method, target, f"refused: {why}{before}")
