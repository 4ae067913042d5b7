"""ControlService: taken from operators only, and every call is audited, refused ones too.

Of a call that this version does not serve an operator is told UNIMPLEMENTED. One that is served is one
coroutine here, under the method's name.
"""

import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
from google.protobuf.message import Message

from nodeagent.outlets import rpc, tables
from nodeagent.outlets.credentials import Caller, Identify, Role
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.outlets.tables import Reload, TablesRefused
from nodeagent.store.ledger import Ledger

MAX_REFUSALS = 60
REFUSALS_WINDOW_S = 60.0

_MAX_TARGET_LENGTH = 256
_MAX_RESULT_LENGTH = 1024
_MAX_REASON_BYTES = 6000
"""Of a status on the wire: gRPC takes 8 KiB of metadata by default."""

_TARGET_FIELDS = ("device", "action_id")

_log = logging.getLogger(__name__)


class RefusalLimit:
    """So many refusals in a window are written to the audit log; nobody fills the disk by being refused."""

    def __init__(
        self,
        most: int = MAX_REFUSALS,
        window_s: float = REFUSALS_WINDOW_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._window_s = window_s
        self._now_s = now_s
        self._written: deque[float] = deque()
        self._unwritten = 0

    def admit(self) -> int | None:
        """None: do not write this one. Else how many before it were not written."""
        now = self._now_s()
        while self._written and self._written[0] <= now - self._window_s:
            self._written.popleft()
        if len(self._written) >= self._most:
            self._unwritten += 1
            return None
        self._written.append(now)
        unwritten, self._unwritten = self._unwritten, 0
        return unwritten


class ControlService:
    """The service behind one door. ``refusals`` is shared by all doors."""

    def __init__(
        self,
        ledger: Ledger,
        identify: Identify,
        refusals: RefusalLimit,
        facts: NodeFacts,
        reload: Reload | None = None,
    ) -> None:
        self._ledger = ledger
        self._identify = identify
        self._refusals = refusals
        self._facts = facts
        self._reload = reload
        self._served: dict[str, Callable[[Caller, Any], Awaitable[Message]]] = {}
        if reload is not None:
            self._served["ReloadTables"] = self._reload_tables

    def behaviour_of(self, method: str) -> rpc.Behaviour:
        async def answer(request: Message, context: grpc.aio.ServicerContext) -> Message:
            caller = self._identify(context)
            target = _target(request)
            if caller.role is not Role.OPERATOR:
                await self._record_refusal(caller, method, target)
                raise Refusal(Status.PERMISSION_DENIED, f"{method} is for operators: {caller.advice}")
            if served := self._served.get(method):
                return await served(caller, request)
            await self._record(caller, method, target, "unimplemented")
            raise Refusal(Status.UNIMPLEMENTED, f"{method} is not served by this version")

        return answer

    async def _reload_tables(self, caller: Caller, request: pb.ReloadTablesRequest) -> Message:
        assert self._reload is not None
        target = "dry run" if request.dry_run else ""
        try:
            reloaded = await self._reload(request.dry_run)
        except TablesRefused as refused:
            reason = _told_lines(str(refused).splitlines())
            await self._record(caller, "ReloadTables", target, f"refused: {reason}"[:_MAX_RESULT_LENGTH])
            raise Refusal(Status.FAILED_PRECONDITION, reason) from refused
        result = "would change" if request.dry_run else "in force"
        await self._record(caller, "ReloadTables", target, f"{result}: {reloaded.digest}")
        return tables.response(self._facts, reloaded)

    async def _record_refusal(self, caller: Caller, method: str, target: str) -> None:
        unwritten = self._refusals.admit()
        if unwritten is None:
            return
        before = f" ({unwritten} more before it were not written)" if unwritten else ""
        await self._record(caller, method, target, f"refused: {caller.advice}{before}")

    async def _record(self, caller: Caller, method: str, target: str, result: str) -> None:
        _log.info("audit: %s asked for %s %s: %s", caller.who, method, target, result)
        await self._ledger.audit(time.time_ns(), caller.who, method, target, result)


def _escaped_length(line: str) -> int:
    """On the wire: what is not printable ASCII takes three bytes for each of its own."""
    return sum(1 if 0x20 <= byte <= 0x7E and byte != ord("%") else 3 for byte in line.encode())


def _told_lines(lines: Sequence[str]) -> str:
    """As many whole lines as a status takes, and how many more there are."""
    told, size = list[str](), 0
    for line in lines:
        size += _escaped_length(line) + len("%0A")
        if size > _MAX_REASON_BYTES:
            told.append(f'and {len(lines) - len(told)} more; "nodeagent tables check" tells them all')
            break
        told.append(line)
    return "\n".join(told)


def _target(request: Message) -> str:
    """What a call is about, where the request names it: cut to a bounded length."""
    for field in _TARGET_FIELDS:
        if field in request.DESCRIPTOR.fields_by_name:
            return str(getattr(request, field))[:_MAX_TARGET_LENGTH]
    return ""
