"""Faults that callers bring: injected ones for rehearsals, and public ones that other systems found.

Each coroutine serves the method of that name of ControlService. It judges no fault: both go to the core as
signals, under sources of their own.
"""

from collections.abc import Callable
from typing import Final

from nodeagent.core.catalog import Catalog, canonical
from nodeagent.core.model import Assertion, DeviceView, Kind, Signal
from nodeagent.outlets import messages, request_fields
from nodeagent.outlets.credentials import Caller
from nodeagent.outlets.known import known_device
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.orders import Ask, Done
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board

INJECTED: Final = "inject"
PUBLIC: Final = "public"

_MOST_NAMED: Final = 20


class Reports:
    """``catalog`` gives the one in force."""

    def __init__(self, board: Board, catalog: Callable[[], Catalog], facts: NodeFacts, ask: Ask) -> None:
        self._board = board
        self._catalog = catalog
        self._node = messages.node_identity(facts)
        self._ask = ask

    async def inject(self, caller: Caller, request: pb.InjectRequest) -> Done:
        device = known_device(self._board.current, request.device)
        signal = Signal(
            source=INJECTED,
            device=device.id,
            code=request_fields.word("code", request.code),
            assertion=request_fields.assertion(request.assertion, where_not_set=Assertion.ONCE),
            evidence={**request_fields.evidence(request.evidence), "injected_by": caller.who},
            injected=True,
            affect_verdict=request.affect_verdict,
        )
        taken = await self._ask(signal)
        told = next((event.condition_id for event in taken.events if event.condition_id), "")
        return Done(
            message=pb.InjectResponse(
                node=self._node, condition_id=told or self._injected_on(device, signal.code)
            ),
            result=f"injected {signal.code} ({signal.assertion})",
        )

    async def report_public_fault(self, _caller: Caller, request: pb.ReportPublicFaultRequest) -> Done:
        device = known_device(self._board.current, request.device)
        evidence = request_fields.evidence(request.evidence)
        evidence["reporter"] = request_fields.word("reporter", request.reporter)
        if request.HasField("found_at"):
            evidence["found_at"] = request.found_at.ToJsonString()
        signal = Signal(
            source=PUBLIC,
            device=device.id,
            code=self._public_code(request.code),
            assertion=request_fields.assertion(request.assertion, where_not_set=None),
            evidence=evidence,
        )
        await self._ask(signal)
        return Done(
            message=pb.ReportPublicFaultResponse(node=self._node),
            result=f"{signal.code} ({signal.assertion}) by {request.reporter}",
        )

    def _public_code(self, code: str) -> str:
        """A code that nobody has described would isolate or hide at a reporter's whim."""
        row = self._catalog().row(request_fields.word("code", code))
        if row is None or row.kind is not Kind.PUBLIC:
            known = sorted(row.code for row in self._catalog().rows.values() if row.kind is Kind.PUBLIC)
            named = ", ".join(known[:_MOST_NAMED])
            told = f"{code!r} has no row of kind public; there are {len(known)}, such as {named}"
            raise Refusal(Status.INVALID_ARGUMENT, f"code: {told}")
        return code

    def _injected_on(self, device: DeviceView, code: str) -> str:
        wanted = (device.id, canonical(code))
        for condition in self._board.current.view.conditions:
            if condition.injected and (condition.device_id, canonical(condition.code)) == wanted:
                return condition.id
        return ""
