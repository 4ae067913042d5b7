"""An operator's orders about actions: reset a device, approve or refuse what is proposed.

Each coroutine serves the method of that name of ControlService, which audits what is returned or refused
here. Whether a reset may be done is the core's to say: it is asked before, and its words are passed on.
"""

from collections.abc import Callable
from typing import Final

from nodeagent.core.model import EventKind, Operator, Reset, ResetMode, ResetStage
from nodeagent.core.rehearsal import Rehearsal
from nodeagent.outlets import messages, messages_of_actions, request_fields
from nodeagent.outlets.credentials import Caller
from nodeagent.outlets.known import known_device
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.orders import Ask, Done
from nodeagent.outlets.pb import control_service_pb2 as pb
from nodeagent.outlets.pb import types_pb2
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board

Rehearse = Callable[[str], Rehearsal | None]
"""What an order to reset the device of that id would do now; None: it is no longer there."""

_PENDING: Final = (ResetStage.ANNOUNCED, ResetStage.ASKING, ResetStage.WAITING)


class Actions:
    def __init__(self, board: Board, facts: NodeFacts, ask: Ask, rehearse: Rehearse) -> None:
        self._board = board
        self._node = messages.node_identity(facts)
        self._ask = ask
        self._rehearse = rehearse

    async def reset_device(self, caller: Caller, request: pb.ResetDeviceRequest) -> Done:
        device = known_device(self._board.current, request.device)
        if request.dry_run:
            rehearsal = self._rehearsed(device.id, device.name)
            message = pb.ResetDeviceResponse(
                node=self._node,
                devices=rehearsal.devices,
                plan=messages_of_actions.plan(rehearsal),
            )
            return Done(message=message, result=rehearsal.refused or "it would be proposed")
        reason = request_fields.reason(request.reason)
        rehearsal = self._rehearsed(device.id, device.name)
        if rehearsal.refused:
            raise Refusal(Status.FAILED_PRECONDITION, rehearsal.refused)
        order = Operator(who=caller.identity, what="reset", device=device.id, reason=reason)
        taken = await self._ask(order)
        proposed = (event.condition_id for event in taken.events if event.kind is EventKind.ACTION_PROPOSED)
        action_id = next(proposed, "")
        if not action_id:
            why = self._rehearsed(device.id, device.name).refused or "it has just changed; ask again"
            raise Refusal(Status.FAILED_PRECONDITION, why)
        message = pb.ResetDeviceResponse(
            node=self._node,
            action_id=action_id,
            devices=rehearsal.devices,
            reset=self._message_of(action_id),
            plan=messages_of_actions.plan(rehearsal),
        )
        result = f"proposed {action_id} ({rehearsal.mode}): {reason}"
        return Done(message=message, result=result, taken=taken)

    async def approve_action(self, caller: Caller, request: pb.ApproveActionRequest) -> Done:
        reason = request_fields.optional_reason(request.reason)
        reset = self._pending(request.action_id)
        if request.approved:
            _check_waits_for_approval(reset)
        what = "approve" if request.approved else "refuse"
        taken = await self._ask(Operator(who=caller.identity, what=what, device=reset.id, reason=reason))
        if not any(event.condition_id == reset.id for event in taken.events):
            raise Refusal(Status.FAILED_PRECONDITION, f"action_id: {reset.id} has just moved on")
        message = pb.ApproveActionResponse(node=self._node, reset=self._message_of(reset.id))
        decided = f"{'approved' if request.approved else 'refused'} {reset.id}"
        result = f"{decided}: {reason}" if reason else decided
        return Done(message=message, result=result, taken=taken)

    def _rehearsed(self, device_id: str, name: str) -> Rehearsal:
        rehearsal = self._rehearse(device_id)
        if rehearsal is None:
            raise Refusal(Status.NOT_FOUND, f"device: {name} is no longer there")
        return rehearsal

    def _pending(self, wanted: str) -> Reset:
        """By its id, or by a device of it. Raises Refusal."""
        resets = self._board.current.view.resets
        pending = [each for each in resets if each.stage in _PENDING]
        device_ids = {each.id for each in self._board.current.view.devices if wanted in (each.name, each.id)}
        found = [each for each in resets if each.id == wanted]
        found = found or [each for each in pending if device_ids.intersection(each.members)]
        if len(found) != 1:
            there = ", ".join(each.id for each in found or pending)
            problem = "has several" if found else "is not known" if not device_ids else "has none"
            told = f"pending are: {there}" if there else "none is pending"
            raise Refusal(Status.NOT_FOUND, f"action_id: {wanted[:256]!r} {problem}; {told}")
        (reset,) = found
        if reset.stage not in _PENDING:
            state = f"has ended: {reset.result}" if reset.stage is ResetStage.ENDED else f"is {reset.stage}"
            raise Refusal(Status.FAILED_PRECONDITION, f"action_id: {reset.id} {state}")
        return reset

    def _message_of(self, action_id: str) -> types_pb2.Reset | None:
        """None where it has ended and is no longer kept."""
        current = self._board.current
        scene = messages.Scene(current)
        found = (each for each in current.view.resets if each.id == action_id)
        return next((messages_of_actions.reset(scene, each) for each in found), None)


def _check_waits_for_approval(reset: Reset) -> None:
    if reset.mode is not ResetMode.ASK:
        told = f"is of mode {reset.mode}, which asks nobody; only one of mode ask can be approved"
    elif reset.approved:
        told = "is approved already"
    else:
        return
    raise Refusal(Status.FAILED_PRECONDITION, f"action_id: {reset.id} {told}")
