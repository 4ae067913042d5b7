"""Binds a servicer's coroutines to the methods of its service descriptor, so that no list is kept twice.

A method ``ListDevices`` is the coroutine ``list_devices(request, context)``; it returns a message, or,
of a method that streams, it writes serialised messages to the context. A ``Refusal`` is for ``admission.py``.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

Behaviour = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Message | None]]


def handlers(service: ServiceDescriptor, behaviour_of: Callable[[str], Behaviour]) -> grpc.GenericRpcHandler:
    """All methods of a service; ``behaviour_of`` gives the coroutine of a method's name."""
    return grpc.method_handlers_generic_handler(
        service.full_name,
        {method.name: _handler(method, behaviour_of(method.name)) for method in service.methods},
    )


def methods_of(*servicers: object) -> Callable[[str], Behaviour]:
    """The coroutine of a method's name, of the first servicer that has it."""

    def behaviour_of(method: str) -> Behaviour:
        name = snake_case(method)
        behaviour: Behaviour = next(getattr(each, name) for each in servicers if hasattr(each, name))
        return behaviour

    return behaviour_of


def snake_case(method: str) -> str:
    """The coroutine of a method: ``ListDevices`` -> ``list_devices``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()


def _handler(method: MethodDescriptor, behaviour: Behaviour) -> grpc.RpcMethodHandler:
    request_class = GetMessageClass(method.input_type)
    make = (
        grpc.unary_stream_rpc_method_handler
        if method.server_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return make(behaviour, request_deserializer=request_class.FromString, response_serializer=_serialised)


def _serialised(response: Message | bytes) -> bytes:
    return response if isinstance(response, bytes) else response.SerializeToString()
