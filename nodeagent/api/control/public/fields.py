"""Checks of what other systems report: the core's words for it, or a refusal that names the field's path.

The limits are MindCluster's: component/clusterd/pkg/application/publicfault/checker.go.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api import request_fields
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.faults.reported import FAULT_ID, SENDER
from nodeagent.core.model import NODE, Assertion, DeviceView, Kind, PublicFault, Report
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb

VERSION: Final = "1.0"
MAX_FAULTS: Final = 100
MAX_LOCATION: Final = 10
MAX_LOCATION_KEY: Final = 16
MAX_LOCATION_VALUE: Final = 128
MAX_INFLUENCE: Final = 1000
MAX_DEVICE_IDS: Final = 32
MAX_DESCRIPTION: Final = 512
CODE_LENGTH: Final = 9

_ID: Final = re.compile(r"[a-zA-Z0-9\-_.]{8,128}")
_LINE: Final = re.compile(r"[\S ]*")
_EARLIEST_MS: Final = 1_735_689_600_000
"""2025-01-01T00:00:00Z."""
_LATEST_MS: Final = 9_999_999_999_999
"""The last that has 13 digits."""
_MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisNode:
    """What a report can be about. ``devices`` are by name."""

    name: str
    serial: str
    devices: Mapping[str, DeviceView]
    catalog: Catalog


def check_message(request: pb.ReportPublicFaultRequest) -> None:
    """All but the sender and the faults."""
    _id("id", request.id)
    _milliseconds("sent_at", request, "sent_at")
    if request.version != VERSION:
        raise _wrong("version", f"{request.version[:40]!r} is not {VERSION!r}")
    if not 0 < len(request.faults) <= MAX_FAULTS:
        raise _wrong("faults", f"1 to {MAX_FAULTS} are needed, not {len(request.faults)}")


def fault(path: str, given: pb.PublicFault, sender: str, node: ThisNode) -> PublicFault:
    """The core's word for one fault. Raises Refusal."""
    fault_id = _id(f"{path}.fault_id", given.fault_id)
    fault_type = _fault_type(f"{path}.fault_type", given.fault_type)
    code = _code(f"{path}.code", given.code, node.catalog)
    began_ms = _milliseconds(f"{path}.began_at", given, "began_at")
    location = _location(f"{path}.location", given.location)
    if len(given.description) > MAX_DESCRIPTION or not _LINE.fullmatch(given.description):
        wanted = f"at most {MAX_DESCRIPTION} characters on one line are needed"
        raise _wrong(f"{path}.description", f"{wanted}, not {given.description[:40]!r}")
    assertion = _assertion(path, given)
    influence = list(given.influence)
    if not 0 < len(influence) <= MAX_INFLUENCE:
        raise _wrong(f"{path}.influence", f"1 to {MAX_INFLUENCE} entries are needed, not {len(influence)}")
    devices = dict.fromkeys(
        device
        for place, each in enumerate(influence)
        for device in _devices(f"{path}.influence[{place}]", each, node)
    )
    evidence = {SENDER: sender, FAULT_ID: fault_id, "fault_type": fault_type}
    evidence["began_at"] = given.began_at.ToJsonString()
    if given.description:
        evidence["description"] = given.description
    return PublicFault(
        report=Report(sender=sender, fault_id=fault_id, began_ms=began_ms),
        code=code,
        assertion=assertion,
        devices=tuple(devices),
        evidence=evidence | {f"location.{key}": value for key, value in location.items()},
    )


def _wrong(field: str, problem: str) -> Refusal:
    return Refusal(Status.INVALID_ARGUMENT, f"{field}: {problem}")


def _id(field: str, text: str) -> str:
    if not _ID.fullmatch(text):
        raise _wrong(field, f'8 to 128 letters, digits, "-", "_" and "." are needed, not {text[:40]!r}')
    return text


def _milliseconds(field: str, message: "pb.ReportPublicFaultRequest | pb.PublicFault", name: str) -> int:
    stamp: Timestamp = getattr(message, name)
    if not message.HasField(name):
        raise _wrong(field, "missing; a time from 2025 on is needed")
    milliseconds = stamp.seconds * 1000 + stamp.nanos // 1_000_000
    if not 0 <= stamp.nanos < 1_000_000_000 or not _EARLIEST_MS <= milliseconds <= _LATEST_MS:
        raise _wrong(field, f"{stamp.seconds} s after 1970 is no time from 2025 on")
    return milliseconds


def _fault_type(field: str, number: int) -> str:
    found = enums.PUBLIC_FAULT_TYPE_OF.get(number)
    if found is None:
        words = ", ".join(pb.PublicFaultType.Name(known) for known in enums.PUBLIC_FAULT_TYPE_OF)
        raise _wrong(field, f"{number} is not one of {words}")
    return found


def _assertion(path: str, given: pb.PublicFault) -> Assertion:
    try:
        return request_fields.assertion(given.assertion, where_not_set=None)
    except Refusal as refusal:
        raise Refusal(refusal.status, f"{path}.{refusal.reason}") from refusal


def _code(field: str, code: str, catalog: Catalog) -> str:
    """A code that nobody has described would isolate or hide at a sender's whim."""
    if len(code) != CODE_LENGTH:
        raise _wrong(field, f"{CODE_LENGTH} characters are needed, not {code[:40]!r}")
    row = catalog.row(code)
    if row is None or row.kind is not Kind.PUBLIC:
        known = sorted(row.code for row in catalog.rows.values() if row.kind is Kind.PUBLIC)
        named = ", ".join(known[:_MOST_NAMED])
        raise _wrong(field, f"{code!r} has no row of kind public; there are {len(known)}, such as {named}")
    return code


def _location(field: str, location: Mapping[str, str]) -> dict[str, str]:
    if len(location) > MAX_LOCATION:
        raise _wrong(field, f"at most {MAX_LOCATION} entries, not {len(location)}")
    for key, value in location.items():
        if not 0 < len(key) <= MAX_LOCATION_KEY or not key.isprintable():
            wanted = f"keys have 1 to {MAX_LOCATION_KEY} printable characters"
            raise _wrong(field, f"{wanted}, unlike {key[:40]!r}")
        if len(value) > MAX_LOCATION_VALUE:
            raise _wrong(f"{field}[{key!r}]", f"at most {MAX_LOCATION_VALUE} characters, not {len(value)}")
    return dict(location)


def _devices(path: str, given: pb.PublicFaultInfluence, node: ThisNode) -> Iterator[str]:
    """The ids of the devices."""
    _check_node(path, given, node)
    numbers = list(given.device_ids)
    if len(numbers) > MAX_DEVICE_IDS:
        raise _wrong(f"{path}.device_ids", f"at most {MAX_DEVICE_IDS}, not {len(numbers)}")
    if not numbers:
        yield _known(path, NODE, node)
    for place, number in enumerate(numbers):
        field = f"{path}.device_ids[{place}]"
        if number >= MAX_DEVICE_IDS:
            raise _wrong(field, f"0 to {MAX_DEVICE_IDS - 1} are needed, not {number}")
        if numbers.index(number) < place:
            raise _wrong(field, f"{number} stands there twice")
        # Our names of NPUs have the physical id, which is MindCluster's.
        yield _known(field, f"npu{number}", node)


def _check_node(path: str, given: pb.PublicFaultInfluence, node: ThisNode) -> None:
    """A report reaches the node that it is about, or is refused: it would be true of another one."""
    if given.node_name:
        if given.node_name.lower() != node.name.lower():
            problem = f"{given.node_name[:253]!r} is another node; this is {node.name!r}: report it there"
            raise _wrong(f"{path}.node_name", problem)
    elif given.node_serial and not node.serial:
        problem = "this node does not know its own; set public.node_serial, or use node_name"
        raise _wrong(f"{path}.node_serial", problem)
    elif given.node_serial and given.node_serial != node.serial:
        problem = f"{given.node_serial[:128]!r} is another node; this is {node.serial!r}: report it there"
        raise _wrong(f"{path}.node_serial", problem)


def _known(field: str, name: str, node: ThisNode) -> str:
    """One that nobody has listed is refused: kept under its name it would isolate what is not there."""
    device = node.devices.get(name)
    if device is None:
        there = ", ".join(list(node.devices)[:_MOST_NAMED])
        raise Refusal(Status.NOT_FOUND, f"{field}: {name!r} is not known; there are: {there}")
    return device.id
