"""The messages of NVRx's node health service, as NVRx itself defines them.

Names and numbers are those of ``src/nvidia_resiliency_ext/shared_utils/proto/nvhcd.proto`` of
NVIDIA/nvidia-resiliency-ext, version 0.7.0. They are NVIDIA's to change, so they are not among the
definitions of this project; and they have a pool of their own, so that a program may load NVIDIA's beside
them.
"""

from typing import Any, Final

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

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
