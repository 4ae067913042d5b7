"""The audit log: who called what, and the result; and ListAudit, which reads it.

Calls of operators are all written. Of other callers only some are, so that no caller can fill the log by
refused calls or by calls that a reader may make.
"""

import logging
import time
from typing import Final

from nodeagent.api import messages
from nodeagent.api.access.credentials import Caller
from nodeagent.api.access.limits import IDENTITIES_KNOWN
from nodeagent.api.control.context import CallResult
from nodeagent.api.faults.list_events import limit_of
from nodeagent.api.messages import NodeFacts
from nodeagent.api.refusal import Refusal, RefusalLimit, Status
from nodeagent.messages import mapping
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger

_MAX_RESULT_LENGTH: Final = 1024

MAX_OF_ONE: Final = 20
"""Entries a minute of one caller that is not an operator, so that there is room for others."""

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
        """Writes some of many refusals: a program may repeat a call that is refused."""
        await self._note_some(caller, method, target, f"refused: {why}")

    async def note_of(self, caller: Caller, method: str, target: str, result: str) -> None:
        """A call that readers may make, too: every one of an operator, some of others."""
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


class AuditReader:
    def __init__(self, ledger: Ledger, facts: NodeFacts) -> None:
        self._ledger = ledger
        self._node = messages.node_identity(facts)

    async def list_audit(self, _caller: Caller, request: pb.ListAuditRequest) -> CallResult:
        limit = limit_of(request.limit)
        last = self._ledger.last_audit
        after = min(request.after_number, last)
        if request.newest:
            after = max(after, last - limit)
        try:
            rows = await self._ledger.read_audit(after, limit)
        except (StoreUnreadableError, StoreDamagedError) as error:
            raise Refusal(Status.UNAVAILABLE, f"the audit log: {error}") from error
        message = pb.ListAuditResponse(
            node=self._node,
            entries=[
                pb.AuditEntry(
                    number=number,
                    at=mapping.timestamp(wall_ns),
                    who=who,
                    what=what,
                    target=target,
                    result=result,
                )
                for number, wall_ns, who, what, target, result in rows
            ],
            more=bool(rows) and rows[-1][0] < last,
        )
        return CallResult(message=message, result=f"listed {len(rows)} entries")
