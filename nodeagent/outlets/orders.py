"""An operator's orders: isolate, release. Checked against what is published, then the core is asked.

Each coroutine serves the method of that name of ControlService, which audits what is returned or refused
here. It decides nothing about faults: whether a device is fit is read off its open conditions.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from google.protobuf.message import Message

from nodeagent.core.catalog import Catalog
from nodeagent.core.model import DeviceView, EventKind, HoldKind, Input, Level, Operator
from nodeagent.core.verdict import PRECEDENCE
from nodeagent.outlets import holds, mapping, messages, request_fields
from nodeagent.outlets.credentials import Caller
from nodeagent.outlets.known import known_device
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board
from nodeagent.store.records import Taken

_UNFIT: Final = PRECEDENCE[Level.RESTART_NPU]


class Ask(Protocol):
    """Steps inputs in one commit and returns what became of them, once that is published."""

    def __call__(self, *inputs: Input) -> Awaitable[Taken]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """``message`` is the answer, ``result`` what the audit log says. ``taken`` is what became of an order:
    its answer has the fields ``durable`` and ``not_durable_reason``, which are filled in from it.
    """

    message: Message
    result: str
    taken: Taken | None = None


class Orders:
    """``catalog`` gives the one in force."""

    def __init__(self, board: Board, catalog: Callable[[], Catalog], facts: NodeFacts, ask: Ask) -> None:
        self._board = board
        self._catalog = catalog
        self._node = messages.node_identity(facts)
        self._ask = ask

    async def isolate_device(self, caller: Caller, request: pb.IsolateDeviceRequest) -> Done:
        device = known_device(self._board.current, request.device)
        reason = request_fields.reason(request.reason)
        order = Operator(
            who=caller.identity,
            owner=request_fields.owner(request.owner, caller.identity),
            what="isolate",
            device=device.id,
            reason=reason,
            until_ns=self._until_ns(request),
        )
        taken = await self._ask(order)
        current = self._board.current
        hold = messages.Scene(current).hold(holds.made_by(current, order, HoldKind.ISOLATION))
        message = pb.IsolateDeviceResponse(node=self._node, hold=hold)
        return Done(message=message, result=f"isolated {holds.end_of(hold)}: {reason}", taken=taken)

    async def release_device(self, caller: Caller, request: pb.ReleaseDeviceRequest) -> Done:
        device = known_device(self._board.current, request.device)
        reason = request_fields.reason(request.reason)
        order = Operator(
            who=caller.identity,
            owner=request_fields.owner(request.owner, caller.identity),
            what="release",
            device=device.id,
            reason=reason,
            only=request.id,
            force=request.force,
        )
        if request.id:
            self._check_is_there(device, request.id)
        if not request.force:
            self._check_fit(device)
        taken = await self._ask(order)
        ends = (EventKind.RELEASED, EventKind.CLEARED)
        ended = [event.condition_id for event in taken.events if event.kind in ends]
        if not ended:
            raise Refusal(Status.FAILED_PRECONDITION, self._nothing_to_release(device, order.owner))
        current = self._board.current
        scene = messages.Scene(current)
        others = [scene.hold(each) for each in holds.on_device(current, device.id, HoldKind.ISOLATION)]
        forced = " by force" if request.force else ""
        return Done(
            message=pb.ReleaseDeviceResponse(node=self._node, released=ended, others=others),
            result=f"released{forced} {', '.join(ended)}: {reason}",
            taken=taken,
        )

    def _until_ns(self, request: pb.IsolateDeviceRequest) -> int | None:
        if not request.HasField("until"):
            return None
        current = self._board.current
        until_ns = mapping.wall_ns(request.until) - current.wall_offset_ns
        if until_ns <= current.view.now_ns:
            told = request.until.ToJsonString()
            raise Refusal(Status.INVALID_ARGUMENT, f"until: {told} is not in the future")
        return until_ns

    def _check_is_there(self, device: DeviceView, wanted: str) -> None:
        view = self._board.current.view
        there = [hold.id for hold in holds.on_device(self._board.current, device.id, HoldKind.ISOLATION)]
        there += [promotion.id for promotion in view.promotions if promotion.device_id == device.id]
        there += [condition.id for condition in view.conditions if condition.device_id == device.id]
        if wanted not in there:
            told = ", ".join(there) or "nothing"
            raise Refusal(Status.NOT_FOUND, f"id: {wanted!r} is not on {device.name}; there is: {told}")

    def _check_fit(self, device: DeviceView) -> None:
        """A device goes back into service only if it is seen to be well. What only a person may clear does
        not count: the release is about that.
        """
        wrong = [
            f"{condition.code} at {condition.level}"
            for condition in self._board.current.view.conditions
            if condition.device_id == device.id
            and condition.affect_verdict
            and not condition.user_induced
            and PRECEDENCE[condition.level] >= _UNFIT
            and not self._is_for_a_person(condition.code)
        ]
        if not device.observed:
            wrong.append("it is not observed")
        if wrong:
            told = f"{device.name} is not fit: {', '.join(wrong)}; mend that first, or release it by force"
            raise Refusal(Status.FAILED_PRECONDITION, told)

    def _is_for_a_person(self, code: str) -> bool:
        row = self._catalog().row(code)
        return row is not None and row.clear_on.operator

    def _nothing_to_release(self, device: DeviceView, owner: str) -> str:
        current = self._board.current
        if others := holds.on_device(current, device.id, HoldKind.ISOLATION):
            return holds.not_yours(f"{device.name} is isolated", owner, others)
        if pending := holds.on_device(current, device.id, HoldKind.RESET_PENDING):
            return f"{device.name}: {pending[0].reason}; refuse that action instead"
        return f"nothing on {device.name} is for a person to release"
