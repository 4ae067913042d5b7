"""Writes the audit log: who asked for what, and what came of it. What operators do is written whole; nobody
else fills the log, by being refused or by what a reader may do.
"""

import logging
import time
from typing import Final

from nodeagent.api.access.credentials import Caller
from nodeagent.api.access.limits import IDENTITIES_KNOWN
from nodeagent.api.refusal import RefusalLimit
from nodeagent.store.ledger import Ledger

_MAX_RESULT_LENGTH: Final = 1024

MAX_OF_ONE: Final = 20
"""So many entries of one who is no operator are written in a minute: the others find room beside him."""

_log = logging.getLogger(__name__)


class AuditLog:
    """One log for all sockets."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._all = RefusalLimit()
        self._each: dict[str, RefusalLimit] = {}

    async def note(self, who: str, method: str, target: str, result: str) -> None:
        _log.info("audit: %s asked for %s %s: %s", who, method, target, result)
        await self._ledger.audit(time.time_ns(), who, method, target, result[:_MAX_RESULT_LENGTH])

    async def note_refusal(self, caller: Caller, method: str, target: str, why: str) -> None:
        """Logs some of many refusals: somebody may not ask, or a program asks again and again."""
        await self._note_some(caller, method, target, f"refused: {why}")

    async def note_of(self, caller: Caller, method: str, target: str, result: str) -> None:
        """What was done for whoever may call, operator or not: some of much that readers do."""
        if caller.is_operator:
            await self.note(caller.who, method, target, result)
        else:
            await self._note_some(caller, method, target, result)

    async def _note_some(self, caller: Caller, method: str, target: str, result: str) -> None:
        unwritten = self._admit(caller.identity)
        if unwritten is not None:
            before = f" ({unwritten} more before it were not written)" if unwritten else ""
            await self.note(caller.who, method, target, result + before)

    def _admit(self, identity: str) -> int | None:
        """As ``RefusalLimit.admit``, for one and for all together."""
        own = self._each.pop(identity, None) or RefusalLimit(most=MAX_OF_ONE)
        self._each[identity] = own
        if len(self._each) > IDENTITIES_KNOWN:
            del self._each[next(iter(self._each))]
        of_own = own.admit()
        of_all = None if of_own is None else self._all.admit()
        return None if of_own is None or of_all is None else of_own + of_all
