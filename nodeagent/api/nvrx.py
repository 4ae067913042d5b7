"""The node health service of NVIDIA's resiliency extension (NVRx): ``HealthCheckService.RunHealthCheck``.

NVRx asks before the workers of a job start, and takes a node that fails out of the job. So what is unknown
does not fail: a driver that does not answer must not empty a cluster. A device that no work is placed on,
such as a port, counts through the verdict of the chips behind it, or of the node.

The names and numbers of the messages are those of
``src/nvidia_resiliency_ext/shared_utils/proto/nvhcd.proto`` of NVIDIA/nvidia-resiliency-ext, version 0.7.0.
NVIDIA may change them, so they are not among the definitions of this project, and they have a descriptor pool
of their own: a program may load NVIDIA's as well.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodeagent.core.model import NODE, DeviceView, Kind, Verdict
from nodeagent.store.event_feed import EventFeed

# ---------------------------------------------------------------------- messages

_REQUEST: Final = "HealthCheckRequest"
_RESPONSE: Final = "HealthCheckResponse"


def _message(name: str, *fields: FieldDescriptorProto) -> DescriptorProto:
    for number, each in enumerate(fields, 1):
        each.number = number
    return DescriptorProto(name=name, field=fields)


def _field(
    name: str,
    kind: "FieldDescriptorProto.Type.ValueType",
    label: "FieldDescriptorProto.Label.ValueType" = FieldDescriptorProto.LABEL_OPTIONAL,
) -> FieldDescriptorProto:
    return FieldDescriptorProto(name=name, type=kind, label=label)


def _service() -> ServiceDescriptor:
    text, flag, number = (
        FieldDescriptorProto.TYPE_STRING,
        FieldDescriptorProto.TYPE_BOOL,
        FieldDescriptorProto.TYPE_INT32,
    )
    file = FileDescriptorProto(name="nvhcd.proto", package="nvhcd", syntax="proto3")
    file.message_type.extend(
        [
            _message(_REQUEST, _field("args", text, FieldDescriptorProto.LABEL_REPEATED)),
            _message(
                _RESPONSE,
                _field("success", flag),
                _field("exit_code", number),
                _field("output", text),
                _field("error", text),
            ),
        ]
    )
    service = file.service.add(name="HealthCheckService")
    service.method.add(name="RunHealthCheck", input_type=_REQUEST, output_type=_RESPONSE)
    found = DescriptorPool().AddSerializedFile(file.SerializeToString())
    described: ServiceDescriptor = found.services_by_name[service.name]
    return described


SERVICE: Final = _service()
HealthCheckResponse: Final[Any] = GetMessageClass(SERVICE.methods_by_name["RunHealthCheck"].output_type)


# ---------------------------------------------------------------------- health

_FAILS: Final = (Verdict.ISOLATE, Verdict.NO_NEW_JOBS)
_HAS_WORK: Final = (Kind.CHIP, Kind.INSTANCE)
"""Kinds of devices that work is placed on, apart from the node itself."""


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """Each text names a device, its codes and its verdict: ``npu3 80E18005 ISOLATE``."""

    failed: tuple[str, ...]
    unknown: tuple[str, ...]


def health(devices: Iterable[DeviceView]) -> NodeHealth:
    """The health of the node and of all devices that work is placed on."""
    judged = [each for each in devices if each.kind in _HAS_WORK or each.name == NODE]
    return NodeHealth(
        failed=tuple(_described(each) for each in judged if each.verdict in _FAILS),
        unknown=tuple(_described(each) for each in judged if each.verdict is Verdict.UNKNOWN),
    )


def _described(device: DeviceView) -> str:
    """With codes; a hold has none, so the kind of its reason is shown. A reason that a person has
    written is not shown here.
    """
    codes = [reason.code for reason in device.reasons if reason.code]
    why = dict.fromkeys(codes or [reason.kind for reason in device.reasons])
    return " ".join(filter(None, (device.name, ",".join(why), device.verdict)))


# ---------------------------------------------------------------------- service


class NodeHealthService:
    """Shared by all connections; used from one event loop.

    NVRx takes a node for unhealthy if ``success`` is false, or if ``fail_count`` in the JSON of ``output`` is
    missing or not 0 (``NodeHealthCheck._perform_health_check`` of its ``shared_utils/health_check.py``,
    version 0.7.0). Without an answer it goes on without this check. Its arguments are meant for a script and
    are ignored here.
    """

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    async def run_health_check(self, _request: Message, _context: grpc.aio.ServicerContext) -> Message:
        found = health(self._feed.current.view.devices)
        output = {
            "fail_count": len(found.failed),
            "failed_checks": found.failed,
            "unknown_checks": found.unknown,
        }
        answer: Message = HealthCheckResponse(
            success=not found.failed,
            exit_code=1 if found.failed else 0,
            output=json.dumps(output),
            error="; ".join(found.failed),
        )
        return answer
