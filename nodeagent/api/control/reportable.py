"""The devices and codes that another system may report: a device of this node, and a code whose kind fits it.

Devices are chips by MindCluster's numbers, or any by their names. The level of a fault follows from the
tables, and whether the core takes it is not decided here. Codes for faults of the daemon itself are refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import DeviceNames, instances_of
from nodeagent.core.catalog.catalog import Catalog, Row
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import NODE, DeviceView, Kind
from nodeagent.core.state.names import part_of
from nodeagent.messages.pb import control_service_pb2 as pb

MAX_DEVICE_IDS: Final = 32
MAX_DEVICES: Final = 256

PUBLIC_LENGTH: Final = 9
"""Of MindCluster's codes."""

FITTING: Final[Mapping[Kind, Sequence[Kind]]] = {
    Kind.CHIP: (Kind.CHIP, Kind.PUBLIC),
    Kind.INSTANCE: (Kind.CHIP, Kind.PUBLIC),
    Kind.NODE: (Kind.NODE, Kind.HOST, Kind.PUBLIC),
    Kind.HOST: (Kind.HOST,),
    Kind.LINK: (Kind.LINK,),
    Kind.UNIFIEDBUS: (Kind.UNIFIEDBUS,),
}
"""Kinds of codes by the kind of the device."""

_CODE: Final = re.compile(r"[!-)+-~]{1,64}")
"""As in tables, but no family."""

_OWN_VENDOR: Final = "nodeagent"
_MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisNode:
    """What a report can be about, and when it arrived (unix time, this node's clock). ``open`` has the names
    of the open reports, each with the identities of the callers that opened it.
    """

    name: str
    serial: str
    devices: DeviceNames
    catalog: Catalog
    now_ms: int
    open: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportedDevice:
    """A device, or a part of a chip that was not known before."""

    id: str
    name: str
    kind: Kind


def reported_devices(path: str, given: pb.PublicFaultInfluence, node: ThisNode) -> Iterator[ReportedDevice]:
    """Raises Refusal: a device is not known, or named twice."""
    if len(given.devices) > MAX_DEVICES:
        raise _wrong(f"{path}.devices", f"at most {MAX_DEVICES}, not {len(given.devices)}")
    if not given.devices and not given.device_ids:
        yield _as_reported(node.devices.one(path, NODE))
    yield from _by_number(f"{path}.device_ids", list(given.device_ids), node)
    for place, wanted in enumerate(given.devices):
        yield _named(f"{path}.devices[{place}]", wanted, node)


def _by_number(path: str, numbers: Sequence[int], node: ThisNode) -> Iterator[ReportedDevice]:
    if len(numbers) > MAX_DEVICE_IDS:
        raise _wrong(path, f"at most {MAX_DEVICE_IDS}, not {len(numbers)}")
    for place, number in enumerate(numbers):
        if number >= MAX_DEVICE_IDS:
            raise _wrong(f"{path}[{place}]", f"0 to {MAX_DEVICE_IDS - 1} are needed, not {number}")
        if numbers.index(number) < place:
            raise _wrong(f"{path}[{place}]", f"{number} is listed twice")
        # Our names of NPUs have the physical id, which is MindCluster's.
        yield _as_reported(node.devices.one(f"{path}[{place}]", f"npu{number}"))


def _named(field: str, wanted: str, node: ThisNode) -> ReportedDevice:
    """A device that is not listed is refused: it would isolate something that does not exist."""
    wanted = node.devices.name_of_part(wanted)
    chip_name, part = part_of(wanted)
    chips = node.devices.meant(chip_name) if part and not node.devices.meant(wanted) else ()
    if len(chips) != 1:
        return _as_reported(node.devices.one(field, wanted))
    (chip,) = chips
    if why := _why_no_part(chip, part):
        raise node.devices.unknown(field, wanted, why)
    return ReportedDevice(f"{chip.id}/{part}", f"{chip.name}/{part}", Kind.INSTANCE)


def _why_no_part(chip: DeviceView, part: str) -> str:
    """Why the chip has no such instance; "" where it has, or its driver does not list them."""
    if chip.attributes.get("mig") != "enabled":
        return f"{chip.name} is not divided into instances"
    there = dict.fromkeys(each for each, _ in instances_of(chip))
    if "mig_devices" not in chip.attributes or part in there:
        return ""
    return f"{chip.name} has {', '.join(there) or 'no instance'}"


def _as_reported(device: DeviceView) -> ReportedDevice:
    return ReportedDevice(device.id, device.name, device.kind)


def check_node(path: str, given: pb.PublicFaultInfluence, node: ThisNode) -> None:
    """Raises ``Refusal`` for a report about another node."""
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


def _wrong(field: str, problem: str) -> Refusal:
    return Refusal(Status.INVALID_ARGUMENT, f"{field}: {problem}")


def of_mindcluster(field: str, code: str, catalog: Catalog, _on: Sequence[ReportedDevice]) -> str:
    """Raises ``Refusal`` for a code without a row: its level would be the sender's choice."""
    if len(code) != PUBLIC_LENGTH:
        raise _wrong(field, f"{PUBLIC_LENGTH} characters are needed, not {code[:40]!r}")
    row = catalog.row(code)
    if row is None or row.kind is not Kind.PUBLIC:
        known = sorted(row.code for row in catalog.rows.values() if row.kind is Kind.PUBLIC)
        named = ", ".join(known[:_MOST_NAMED])
        raise _wrong(field, f"{code!r} has no row of kind public; there are {len(known)}, such as {named}")
    return code


def well_formed(field: str, code: str, _catalog: Catalog, _on: Sequence[ReportedDevice]) -> str:
    """Raises Refusal."""
    if not _CODE.fullmatch(code):
        wanted = '1 to 64 printable ASCII characters without blanks and "*" are needed'
        raise _wrong(field, f"{wanted}, not {code[:40]!r}")
    return code


def fitting(field: str, code: str, catalog: Catalog, on: Sequence[ReportedDevice]) -> str:
    """A code of the tables that fits all of these devices, or one that no table has. Raises Refusal."""
    row = catalog.row(well_formed(field, code, catalog, on))
    if row is None:
        return code
    if row.vendor == _OWN_VENDOR:
        raise _wrong(field, f"{code!r} is a code of nodeagent itself; no other system may report it")
    for device in on:
        if row.kind not in FITTING[device.kind]:
            raise _wrong(field, _unfit(code, row, device))
    return code


def in_ids(code: str, catalog: Catalog) -> str:
    """The same for each way to write it."""
    row = catalog.row(code)
    return row.code if row is not None and canonical(row.code) == canonical(code) else code.upper()


def _unfit(code: str, row: Row, device: ReportedDevice) -> str:
    takes = " or ".join(FITTING[device.kind])
    fits = ", ".join(kind for kind, kinds in FITTING.items() if row.kind in kinds)
    return (
        f"{code!r} is of kind {row.kind}, which fits devices of kind {fits};"
        f" {device.name} is of kind {device.kind} and takes codes of kind {takes}"
    )
