"""The client that blocks."""

import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.message import Message

from nodeagent.client import calls, received
from nodeagent.client.errors import ClientError
from nodeagent.client.session import Session
from nodeagent.client.values import Condition, Consumer, Device, Job, Position, Update
from nodeagent.core.model import EventKind, Level
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


class Client:
    """One daemon. ``socket`` is a path, or ``HOST:PORT`` with ``credentials`` for mutual TLS.

    ``wait_for_ready``: where nobody answers, what has a time limit ends with that, and not at once.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        timeout_s: float = calls.CALL_TIMEOUT_S,
        *,
        wait_for_ready: bool = False,
    ) -> None:
        target = calls.target(socket)
        self._timeout_s = timeout_s
        self._wait_for_ready = wait_for_ready
        if credentials is None:
            self._channel = grpc.insecure_channel(target, options=calls.OPTIONS)
        else:
            self._channel = grpc.secure_channel(target, credentials, options=calls.OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def watch(
        self,
        after: Position | None = None,
        *,
        consumer: str = "",
        snapshot: str = "if_needed",
        kinds: Iterable[EventKind] = (),
        devices: Iterable[str] = (),
        minimum_level: Level | None = None,
    ) -> Iterator[Update]:
        """Follows the node without end, across restarts of the daemon, each event once and in order.

        Store ``update.position`` together with its effect and give it as ``after`` the next time. With
        a ``consumer`` and no ``after`` it continues after the last ``ack``. ``snapshot`` is always,
        if_needed or never. Raises ``ClientError`` only where trying again cannot help.
        """
        session = Session(
            after=after,
            consumer=consumer,
            snapshot=snapshot,
            kinds=kinds,
            devices=devices,
            minimum_level=minimum_level,
        )
        while True:
            try:
                with closing(self.stream(session.request())) as responses:
                    for response in responses:
                        yield from session.updates(response)
                ended = ClientError("UNAVAILABLE", "the daemon ended the stream")
            except ClientError as failure:
                ended = failure
            time.sleep(session.pause_s(ended))

    def ack(self, consumer: str, position: Position) -> int:
        """Remembers in the daemon how far a consumer has come; the answer is the number remembered."""
        store_id = types_pb2.StoreId(uuid=position.uuid, epoch=position.epoch)
        answer = self.call(pb.AckRequest(consumer=consumer, store_id=store_id, seq=position.seq))
        return int(answer.seq)

    def consumers(self) -> tuple[Consumer, ...]:
        """The named consumers, by name."""
        answer = self.call(pb.ListConsumersRequest())
        return tuple(received.consumer(each) for each in answer.consumers)

    def delete_consumer(self, name: str) -> None:
        """Forgets a consumer: one of your own, or any where you may control. Raises ``ClientError``."""
        self.call(pb.DeleteConsumerRequest(consumer=name))

    def devices(self, names: Iterable[str] = ()) -> tuple[Device, ...]:
        """The devices as they stand, the node itself first."""
        answer = self.call(pb.ListDevicesRequest(devices=names))
        return tuple(received.device(each) for each in answer.devices)

    def conditions(
        self, devices: Iterable[str] = (), minimum_level: Level | None = None
    ) -> tuple[Condition, ...]:
        """The open conditions."""
        level = enums.level_number(minimum_level)
        answer = self.call(pb.ListConditionsRequest(devices=devices, minimum_level=level))
        return tuple(received.condition(each) for each in answer.conditions)

    def jobs(self) -> tuple[Job, ...]:
        """The jobs that use the node, also those that nobody supervises; those that ended for 30 days."""
        answer = self.call(pb.ListJobsRequest())
        return tuple(received.job(each) for each in answer.jobs)

    def call(self, request: Message) -> Any:
        """Any method that answers once: the request's type says which. Raises ``ClientError``."""
        method = self._channel.unary_unary(
            calls.path_of(request),
            request_serializer=type(request).SerializeToString,
            response_deserializer=calls.response_class(request).FromString,
        )
        try:
            return method(request, timeout=self._timeout_s, wait_for_ready=self._wait_for_ready)
        except grpc.RpcError as failure:
            raise calls.error_of(failure) from failure

    def stream(self, request: Message, *, timeout_s: float | None = None) -> Generator[Any, None, None]:
        """Any method that answers with a stream, until it ends or is closed. Raises ``ClientError``."""
        method = self._channel.unary_stream(
            calls.path_of(request),
            request_serializer=type(request).SerializeToString,
            response_deserializer=calls.response_class(request).FromString,
        )
        wait_for_ready = self._wait_for_ready and timeout_s is not None
        answers = method(request, timeout=timeout_s, wait_for_ready=wait_for_ready)
        try:
            yield from answers
        except grpc.RpcError as failure:
            raise calls.error_of(failure) from failure
        finally:
            answers.cancel()
