"""ListAudit: what was asked of ControlService, by whom, and what came of it."""

from nodeagent.api import messages
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import Done
from nodeagent.api.faults.list_events import limit_of
from nodeagent.api.messages import NodeFacts
from nodeagent.api.refusal import Refusal, Status
from nodeagent.messages import mapping
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger


class Audit:
    def __init__(self, ledger: Ledger, facts: NodeFacts) -> None:
        self._ledger = ledger
        self._node = messages.node_identity(facts)

    async def list_audit(self, _caller: Caller, request: pb.ListAuditRequest) -> Done:
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
        return Done(message=message, result=f"listed {len(rows)} entries")
