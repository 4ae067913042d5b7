"""A message of public faults as MindCluster's senders write it: JSON, read into a request.

Only its form is checked here: names and types of keys. The daemon checks the values.
Source: docs/en/scheduling/api/clusterd/03_public_fault_apis.md of MindCluster.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from nodeagent.core.model import Assertion
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb

Milliseconds = Annotated[int, Meta(ge=0, le=9_999_999_999_999)]
DeviceId = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Influence(Struct, forbid_unknown_fields=True, rename="camel"):
    device_ids: list[DeviceId] = []
    node_name: str = ""
    node_serial: str = msgspec.field(default="", name="nodeSN")


class FileFault(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    fault_id: str
    fault_type: Literal["NPU", "Node", "Network", "Storage"]
    fault_code: str
    fault_time: Milliseconds
    assertion: Literal["occur", "recover", "once"]
    fault_location: Mapping[str, str] = {}
    influence: list[Influence]
    description: str = ""


class FileMessage(Struct, forbid_unknown_fields=True, kw_only=True):
    id: str
    timestamp: Milliseconds
    version: str
    resource: str
    faults: list[FileFault]


_DECODER = msgspec.json.Decoder(FileMessage)


def request_of(text: bytes) -> pb.ReportPublicFaultRequest:
    """Raises ``ValueError``, which names the place where the text is not such a message."""
    try:
        message = _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    request = pb.ReportPublicFaultRequest(
        id=message.id,
        version=message.version,
        sender=message.resource,
        faults=map(_fault_of_file, message.faults),
    )
    request.sent_at.FromMilliseconds(message.timestamp)
    return request


def _fault_of_file(given: FileFault) -> pb.PublicFault:
    fault = pb.PublicFault(
        fault_id=given.fault_id,
        fault_type=enums.PUBLIC_FAULT_TYPES[given.fault_type.lower()],
        code=given.fault_code,
        assertion=enums.ASSERTIONS[Assertion(given.assertion)],
        location=given.fault_location,
        influence=[
            pb.PublicFaultInfluence(
                node_name=each.node_name, node_serial=each.node_serial, device_ids=each.device_ids
            )
            for each in given.influence
        ],
        description=given.description,
    )
    fault.began_at.FromMilliseconds(given.fault_time)
    return fault
