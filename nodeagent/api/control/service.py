"""ControlService: for operators only; every call is audited, refused ones too.

ReportPublicFault is also for reporters. They are programs: of many refused calls some are audited, with the
number of the others. ``served`` names the function that serves each method; any other method is answered
UNIMPLEMENTED.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message

from nodeagent.api import request_fields, rpc_binding
from nodeagent.api.access.credentials import Caller, Identify, Role
from nodeagent.api.control import claims, orders, public_faults
from nodeagent.api.control.audit import AuditLog, AuditReader
from nodeagent.api.control.context import CallResult, Context
from nodeagent.api.control.senders import Senders
from nodeagent.api.control.tables import Tables
from nodeagent.api.refusal import Refusal, Status

_MAX_TARGET_LENGTH = 256
_TARGET_FIELDS = ("device", "action_id", "sender", "job")
_CLAIMS = "claims"
_OWNER = "owner"
_DRY_RUN = "dry_run"
_OF_REPORTERS = frozenset({"ReportPublicFault"})

_log = logging.getLogger(__name__)

Serve = Callable[[Caller, Any], Awaitable[CallResult]]
Served = Mapping[str, Serve]
"""The keys are names of methods."""


def served(context: Context, tables: Tables, audit: AuditReader, senders: Senders) -> Served:
    return {
        **{name: partial(orders.execute, method, context) for name, method in orders.METHODS.items()},
        "ResetDevice": partial(orders.reset_device, context),
        "Inject": partial(orders.inject, context),
        "SetClaims": partial(claims.set_claims, context),
        "ListAudit": audit.list_audit,
        "ReloadTables": tables.reload_tables,
        "ReportPublicFault": partial(public_faults.report_public_fault, context, senders),
    }


class ControlService:
    """The service behind one socket. ``audit`` and ``served`` are shared by all."""

    def __init__(self, audit: AuditLog, identify: Identify, served: Served) -> None:
        self._audit = audit
        self._identify = identify
        self._served = served
        self._in_hand: set[asyncio.Task[Message]] = set()

    def behaviour_of(self, method: str) -> rpc_binding.Behaviour:
        serve = self._served.get(method)

        async def answer(request: Message, context: grpc.aio.ServicerContext) -> Message:
            caller = self._identify(context)
            target = _target(request)
            if caller.role not in _allowed(method):
                await self._audit.note_refusal(caller, method, target, caller.advice)
                whom = " and ".join(f"{role}s" for role in _allowed(method))
                raise Refusal(Status.PERMISSION_DENIED, f"{method} is for {whom}: {caller.advice}")
            if serve is None:
                await self._audit.note(caller.who, method, target, "unimplemented")
                raise Refusal(Status.UNIMPLEMENTED, f"{method} is not served by this version")
            # A call that has begun is finished and audited, even where the caller disconnects.
            task = asyncio.create_task(self._done(serve, caller, method, request))
            self._in_hand.add(task)
            task.add_done_callback(self._let_go)
            return await asyncio.shield(task)

        return answer

    async def _done(self, serve: Serve, caller: Caller, method: str, request: Message) -> Message:
        who, target = _who(caller, request), _target(request)
        try:
            done = await serve(caller, request)
        except Refusal as refusal:
            if method in _OF_REPORTERS:
                await self._audit.note_refusal(caller, method, target, refusal.reason)
            else:
                await self._audit.note(who, method, target, f"refused: {refusal.reason}")
            raise
        except Exception as error:
            _log.exception("%s of %s", method, target)
            await self._audit.note(who, method, target, f"failed: {type(error).__name__}: {error}")
            raise
        lost = f" (not durable: {done.taken.not_durable})" if done.taken and done.taken.not_durable else ""
        await self._audit.note(who, method, target, done.result + lost)
        return _with_durability(done)

    def _let_go(self, task: asyncio.Task[Message]) -> None:
        self._in_hand.discard(task)
        if not task.cancelled():
            # The exception belongs to the caller, which may have disconnected.
            task.exception()


def _allowed(method: str) -> tuple[Role, ...]:
    return (Role.REPORTER, Role.OPERATOR) if method in _OF_REPORTERS else (Role.OPERATOR,)


def _who(caller: Caller, request: Message) -> str:
    """The caller, and the owner in whose name it calls if the request has one."""
    owner = getattr(request, _OWNER) if _OWNER in request.DESCRIPTOR.fields_by_name else ""
    return f"{caller.who} for {owner}" if request_fields.is_owner(owner) else caller.who


def _with_durability(done: CallResult) -> Message:
    """Fill in whether the order is on the disk."""
    if done.taken is not None:
        durable = type(done.message)(
            durable=not done.taken.not_durable, not_durable_reason=done.taken.not_durable
        )
        done.message.MergeFrom(durable)
    return done.message


def _target(request: Message) -> str:
    """What a call is about, where the request names it, cut to a bounded length."""
    fields = request.DESCRIPTOR.fields_by_name
    named = [str(getattr(request, field)) for field in _TARGET_FIELDS if field in fields]
    if _CLAIMS in fields:
        named += dict.fromkeys(claim.device for claim in getattr(request, _CLAIMS))
    if _DRY_RUN in fields and getattr(request, _DRY_RUN):
        named.append("dry run")
    return ", ".join(filter(None, named))[:_MAX_TARGET_LENGTH]
