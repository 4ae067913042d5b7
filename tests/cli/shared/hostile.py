"""A daemon that means harm to who asks it: each text of its answers is full of what a terminal obeys."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodeagent.messages.pb import control_service_pb2, fault_service_pb2, types_pb2
from tests.client.filled import filled

CLIPBOARD: Final = "\x1b]52;c;cm0gLXJmIC8K\x07"
TITLE: Final = "\x1b]0;owned\x1b\\"
HAZARDS: Final = (
    "\x1b[31mred\x1b[0m",
    TITLE,
    CLIPBOARD,
    "\x9b2J\x9d0;owned\x9c",
    "\nnode: ALLOW, handling NONE",
    "\r\t\v\f\b\x7f\x85",
    "\u2028\u2029",
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "\u200b\u200c\u200d\u200e\u200f\u061c\ufeff\u00ad\u034f\ufe0f\u3164",
    "\U000e0041\ue000\uffff",
)
TEXT: Final = "".join(HAZARDS)

_SERVICES: Final = (
    fault_service_pb2.DESCRIPTOR.services_by_name["FaultService"],
    control_service_pb2.DESCRIPTOR.services_by_name["ControlService"],
)


def hostile(message: Message) -> Message:
    """The message, with all of it before each of its texts."""
    for field, value in message.ListFields():
        own: Any = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            given = dict(own)
            own.clear()
            own.update(
                {TEXT + key: TEXT + each if isinstance(each, str) else each for key, each in given.items()}
            )
        elif field.message_type is not None:
            for each in own if field.is_repeated else (own,):
                hostile(each)
        elif field.type == field.TYPE_STRING and field.is_repeated:
            own[:] = [TEXT + each for each in value]
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, TEXT + value)
    return message


@contextmanager
def daemon(socket: Path, *, refuses: bool = False) -> Iterator[None]:
    """It answers each call of each service, or ``refuses`` each."""
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    for service in _SERVICES:
        handlers = {method.name: _handler(method, refuses=refuses) for method in service.methods}
        generic = grpc.method_handlers_generic_handler(service.full_name, handlers)
        server.add_generic_rpc_handlers((generic,))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def _handler(method: Any, *, refuses: bool) -> Any:
    asked, answered = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    codec = {"request_deserializer": asked.FromString, "response_serializer": answered.SerializeToString}

    def answer(_request: Message, context: grpc.ServicerContext) -> Message:
        if refuses:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, TEXT)
        return hostile(filled(answered))

    def watch(_request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
        if refuses:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, TEXT)
        state = filled(fault_service_pb2.Snapshot)
        for device in state.devices:
            device.kind, device.verdict = types_pb2.KIND_CHIP, types_pb2.VERDICT_ISOLATE
        yield hostile(answered(snapshot=state))
        yield hostile(answered(batch=filled(fault_service_pb2.EventBatch)))

    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(watch, **codec)
    return grpc.unary_unary_rpc_method_handler(answer, **codec)
