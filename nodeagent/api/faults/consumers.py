"""The calls about named consumers: acknowledge, list, set back, delete.

Each coroutine serves the method of that name of FaultService. What a name means, and when it is forgotten, is
the store's.
"""

from typing import Final

import grpc

from nodeagent.api import messages
from nodeagent.api.access.credentials import Caller, Identify, Role, reader
from nodeagent.api.control.audit import AuditLog
from nodeagent.api.messages import NodeFacts
from nodeagent.api.refusal import Refusal, Status
from nodeagent.messages.mapping import writer
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.consumers import Consumer
from nodeagent.store.errors import (
    BeyondLastError,
    ConsumerError,
    OtherOwnerError,
    OtherStoreError,
    TooManyConsumersError,
)
from nodeagent.store.ledger import Ledger

MAX_NAME_CHARACTERS: Final = 128

_DELETE: Final = "DeleteConsumer"
_REWIND: Final = "RewindConsumer"

_STATUSES: Final = {
    OtherStoreError: Status.FAILED_PRECONDITION,
    BeyondLastError: Status.INVALID_ARGUMENT,
    OtherOwnerError: Status.PERMISSION_DENIED,
    TooManyConsumersError: Status.RESOURCE_EXHAUSTED,
}


class ConsumerService:
    """Behind one socket; ``identify`` gives the caller."""

    def __init__(self, ledger: Ledger, facts: NodeFacts, identify: Identify, audit: AuditLog) -> None:
        self._ledger = ledger
        self._node = messages.node_identity(facts)
        self._identify = identify
        self._audit = audit

    async def ack(self, request: pb.AckRequest, context: grpc.aio.ServicerContext) -> pb.AckResponse:
        caller = reader(self._identify, context)
        name = checked_name(request.consumer)
        store_id = messages.core_store_id(request.store_id)
        try:
            kept = await self._ledger.ack(
                name, caller.identity, store_id, request.seq, is_operator=caller.is_operator
            )
        except ConsumerError as error:
            raise Refusal(_STATUSES[type(error)], str(error)) from error
        return pb.AckResponse(
            node=self._node, store_id=messages.store_id(self._ledger.store_id), seq=kept.seq
        )

    async def list_consumers(
        self, _request: pb.ListConsumersRequest, context: grpc.aio.ServicerContext
    ) -> pb.ListConsumersResponse:
        reader(self._identify, context)
        last_seq = self._ledger.last_seq
        return pb.ListConsumersResponse(
            node=self._node,
            store_id=messages.store_id(self._ledger.store_id),
            last_seq=last_seq,
            consumers=[_message(each, last_seq) for each in self._ledger.consumers()],
        )

    async def rewind_consumer(
        self, request: pb.RewindConsumerRequest, context: grpc.aio.ServicerContext
    ) -> pb.RewindConsumerResponse:
        caller = reader(self._identify, context)
        before = await self._owned(caller, request.consumer, _REWIND, "sets it back")
        try:
            consumer, durable = await self._ledger.rewind(
                before.name, messages.core_store_id(request.store_id), request.seq
            )
        except ConsumerError as error:
            raise Refusal(_STATUSES[type(error)], str(error)) from error
        done = f"set back: {consumer.owner}'s, from {before.seq} to {consumer.seq}"
        await self._audit.note_of(caller, _REWIND, consumer.name, done)
        return pb.RewindConsumerResponse(
            node=self._node,
            store_id=messages.store_id(self._ledger.store_id),
            seq=consumer.seq,
            seq_before=before.seq,
            durable=durable,
            not_durable_reason="" if durable else self._ledger.degraded,
        )

    async def delete_consumer(
        self, request: pb.DeleteConsumerRequest, context: grpc.aio.ServicerContext
    ) -> pb.DeleteConsumerResponse:
        caller = reader(self._identify, context)
        consumer = await self._owned(caller, request.consumer, _DELETE, "deletes it")
        await self._ledger.delete_consumer(consumer.name)
        done = f"deleted: {consumer.owner}'s, at {consumer.seq}"
        await self._audit.note_of(caller, _DELETE, consumer.name, done)
        return pb.DeleteConsumerResponse(node=self._node)

    async def _owned(self, caller: Caller, name: str, method: str, does: str) -> Consumer:
        """A consumer that the caller may change. Refuses, and audits that he may not."""
        consumer = self._ledger.consumer(checked_name(name))
        if consumer is None:
            raise Refusal(Status.NOT_FOUND, f"consumer: there is none of the name {name!r}")
        if caller.role is not Role.OPERATOR and consumer.owner != caller.identity:
            reason = f"consumer {name!r} belongs to {consumer.owner}"
            await self._audit.note_refusal(caller, method, name, reason)
            raise Refusal(Status.PERMISSION_DENIED, f"{reason}: only its owner, or an operator, {does}")
        return consumer


def checked_name(name: str) -> str:
    """A consumer's name as a request gives it. Refuses what is none."""
    if not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise Refusal(
            Status.INVALID_ARGUMENT, f"consumer: 1 to {MAX_NAME_CHARACTERS} printable characters are needed"
        )
    return name


_consumer = writer(Consumer, pb.Consumer, computed=["lag"], renamed={"acked_at": "acked_wall_ns"})


def _message(consumer: Consumer, last_seq: int) -> pb.Consumer:
    return _consumer(consumer, lag=max(0, last_seq - consumer.seq))
