"""Which devices of this node a report is about: chips by MindCluster's numbers, or devices by their names.

It knows no code, and whether a device may be reported is the core's to say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import DeviceNames, instances_of
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import NODE, DeviceView, Kind
from nodeagent.core.state.names import part_of
from nodeagent.messages.pb import control_service_pb2 as pb

MAX_DEVICE_IDS: Final = 32
MAX_DEVICES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisNode:
    """What a report can be about, and when it comes (unix time, this node's clock). ``open`` are the names of
    the reports that are open, each with the identities of those who opened it.
    """

    name: str
    serial: str
    devices: DeviceNames
    catalog: Catalog
    now_ms: int
    open: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Concerned:
    """A device, or a part of a chip that nobody has named before."""

    id: str
    name: str
    kind: Kind


def devices(path: str, given: pb.PublicFaultInfluence, node: ThisNode) -> Iterator[Concerned]:
    """Raises Refusal: a device is not known, or named twice."""
    if len(given.devices) > MAX_DEVICES:
        raise _wrong(f"{path}.devices", f"at most {MAX_DEVICES}, not {len(given.devices)}")
    if not given.devices and not given.device_ids:
        yield _of(node.devices.one(path, NODE))
    yield from _by_number(f"{path}.device_ids", list(given.device_ids), node)
    for place, wanted in enumerate(given.devices):
        yield _named(f"{path}.devices[{place}]", wanted, node)


def _by_number(path: str, numbers: Sequence[int], node: ThisNode) -> Iterator[Concerned]:
    if len(numbers) > MAX_DEVICE_IDS:
        raise _wrong(path, f"at most {MAX_DEVICE_IDS}, not {len(numbers)}")
    for place, number in enumerate(numbers):
        if number >= MAX_DEVICE_IDS:
            raise _wrong(f"{path}[{place}]", f"0 to {MAX_DEVICE_IDS - 1} are needed, not {number}")
        if numbers.index(number) < place:
            raise _wrong(f"{path}[{place}]", f"{number} stands there twice")
        # Our names of NPUs have the physical id, which is MindCluster's.
        yield _of(node.devices.one(f"{path}[{place}]", f"npu{number}"))


def _named(field: str, wanted: str, node: ThisNode) -> Concerned:
    """One that nobody has listed is refused: kept under its name it would isolate what is not there."""
    wanted = node.devices.name_of_part(wanted)
    chip_name, part = part_of(wanted)
    chips = node.devices.meant(chip_name) if part and not node.devices.meant(wanted) else ()
    if len(chips) != 1:
        return _of(node.devices.one(field, wanted))
    (chip,) = chips
    if why := _why_no_part(chip, part):
        raise node.devices.unknown(field, wanted, why)
    return Concerned(f"{chip.id}/{part}", f"{chip.name}/{part}", Kind.INSTANCE)


def _why_no_part(chip: DeviceView, part: str) -> str:
    """Why the chip has no such instance; "" where it has, or its driver does not say which it has."""
    if chip.attributes.get("mig") != "enabled":
        return f"{chip.name} is not divided into instances"
    there = dict.fromkeys(each for each, _ in instances_of(chip))
    if "mig_devices" not in chip.attributes or part in there:
        return ""
    return f"{chip.name} has {', '.join(there) or 'no instance'}"


def _of(device: DeviceView) -> Concerned:
    return Concerned(device.id, device.name, device.kind)


def check_node(path: str, given: pb.PublicFaultInfluence, node: ThisNode) -> None:
    """A report reaches the node that it is about, or is refused: it would be true of another one. Raises
    Refusal.
    """
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
