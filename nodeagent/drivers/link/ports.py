"""The ports of the node: RDMA ports from sysfs, joined with their interfaces, under the names that people
use.

A port of hardware is known by its place (PCI function and number), whatever its interface is called. Its
interface and its RDMA port are one port. An InfiniBand port is named after its RDMA device, any other after
its interface.

RDMA ports are read from /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband of Linux). The
counters of InfiniBand stop at their highest value until they are cleared. Nothing is judged here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import quote

from nodeagent.core.model import Kind
from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.link.interface import Interface
from nodeagent.drivers.link.place import PortPlace, names, place_of_device
from nodeagent.wire import Device

INFINIBAND: Final = "InfiniBand"

_NUMBERED: Final = re.compile(r"(\d{1,2}): ?([\w <>]{1,32})")
_RATE: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) Gb/sec\b.*")
_COUNT: Final = re.compile(r"\d{1,20}")

_ACTIVE: Final = "4"
_DISABLED: Final = "3"
"""The ``phys_state`` of a port that an administrator has switched off."""

DATA_WORD_BYTES: Final = 4
"""``port_rcv_data`` and ``port_xmit_data`` count words of four bytes."""

_ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    "counters": (
        "excessive_buffer_overrun_errors",
        "link_downed",
        "link_error_recovery",
        "local_link_integrity_errors",
        "port_rcv_errors",
        "port_xmit_discards",
        "symbol_error",
    ),
    "hw_counters": (
        "local_ack_timeout_err",
        "out_of_sequence",
        "packet_seq_err",
        "rnr_nak_retry_err",
        "roce_adp_retrans",
        "roce_slow_restart",
    ),
}
_TRAFFIC: Final[Mapping[str, str]] = {
    "port_rcv_data": "link_received_bytes_total",
    "port_xmit_data": "link_sent_bytes_total",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaPort:
    """A port by its device and its number there, from 1. ``folder`` is where it is in sysfs.

    ``firmware`` and ``board`` are the card's, "" if the driver does not report them.
    """

    device: str
    number: int
    place: PortPlace
    link_layer: str
    folder: Path
    firmware: str = ""
    board: str = ""

    @property
    def name(self) -> str:
        return self.device if self.number == 1 else f"{self.device}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaState:
    """``text`` are its state and its physical state as the kernel writes them."""

    is_active: bool
    is_disabled: bool
    text: str
    rate_gbps: float


def rdma_ports(sysfs: Path) -> list[RdmaPort]:
    """Those of hardware; a guest's (SR-IOV) and those of software are left out. Raises ``OSError``."""
    root = sysfs / "class/infiniband"
    found = []
    for device in names(root):
        for port in names(root / device / "ports"):
            place = place_of_device(root / device / "device", int(port) - 1 if port.isdecimal() else -1)
            if place is not None and place.number >= 0:
                folder = root / device / "ports" / port
                found.append(
                    RdmaPort(
                        device=device,
                        number=int(port),
                        place=place,
                        link_layer=_first_line(folder / "link_layer"),
                        folder=folder,
                        firmware=_first_line(root / device / "fw_ver"),
                        board=_first_line(root / device / "board_id"),
                    )
                )
    return found


def read_state(port: RdmaPort) -> RdmaState:
    """Raises ``CallFailed`` where sysfs cannot be read, or has an invalid value."""
    state, physical = _numbered(port.folder / "state"), _numbered(port.folder / "phys_state")
    rate = _RATE.fullmatch(_read(port.folder / "rate"))
    if rate is None:
        raise CallFailed(f"{port.folder / 'rate'} holds no rate such as 400 Gb/sec (4X NDR)")
    return RdmaState(
        is_active=state[1] == _ACTIVE,
        is_disabled=physical[1] == _DISABLED,
        text=f"{state[2]}, {physical[2]}",
        rate_gbps=float(rate[1]),
    )


def read_counters(port: RdmaPort) -> dict[str, float]:
    """Readings by metric. A counter that the card does not have, or that cannot be read, is left out."""
    readings: dict[str, float] = {}
    for folder, counters in _ERRORS.items():
        for counter in counters:
            if (value := _count(port.folder / folder / counter)) is not None:
                readings[f"port_errors_total.{counter}"] = value
    for counter, metric in _TRAFFIC.items():
        if (value := _count(port.folder / "counters" / counter)) is not None:
            readings[metric] = value * DATA_WORD_BYTES
    return readings


def _count(file: Path) -> float | None:
    """None also for "N/A (no PMA)", where the card does not count."""
    try:
        text = file.read_text(errors="replace").strip()
    except OSError:
        return None
    return float(text) if _COUNT.fullmatch(text) else None


def _numbered(file: Path) -> re.Match[str]:
    match = _NUMBERED.fullmatch(_read(file))
    if match is None:
        raise CallFailed(f"{file} holds no state such as 4: ACTIVE")
    return match


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError as error:
        raise CallFailed(f"{file} cannot be read: {error.strerror}", errno=error.errno or 0) from None


def _first_line(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()[:32]
    except OSError:
        return ""


VENDOR: Final = "linux"
BOND: Final = "bond"

_SAFE: Final = "".join(map(chr, range(0x21, 0x7F)))
_NAME_OF_ANOTHER: Final = re.compile(r"node|\*|(?:gpu|npu|ub)\d.*")
"""A name that means a device of another source."""

_MAX_TEXT: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """``index`` is that of its interface, 0 for none. ``members`` are those of a bond's interfaces.

    ``is_expected``: the configuration requires it to exist and be up. ``is_needed``: jobs need it,
    since it does RDMA or is expected, and it is no member of a bond, which is needed in its place.
    """

    name: str
    index: int = 0
    place: PortPlace | None = None
    rdma: RdmaPort | None = None
    members: tuple[int, ...] = ()
    kind: str = ""
    is_expected: bool = False
    is_needed: bool = False
    chips: tuple[str, ...] = ()

    @property
    def is_infiniband(self) -> bool:
        """Its state is that of its RDMA port: an IP interface on top may be down by itself."""
        return self.rdma is not None and (self.index == 0 or self.rdma.link_layer == INFINIBAND)

    @property
    def is_missing(self) -> bool:
        return self.index == 0 and self.rdma is None

    def device(self) -> Device:
        """What is reported of it. The first port of a function is known by the address of the function; a
        virtual interface, which has none, by its index, and a bond by its name.
        """
        attributes = {"chips": ",".join(self.chips)[:_MAX_TEXT]} if self.chips else {}
        identity = ""
        if self.place is not None:
            attributes["driver"] = self.place.driver
            if self.place.number == 0:
                attributes["pci"] = self.place.pci
            else:
                identity = f"{self.place.pci}/{self.place.number}"
        elif self.index and self.kind != BOND:
            identity = f"interface-{self.index}"
        if self.rdma is not None:
            attributes |= {"rdma": self.rdma.name, "link_layer": self.rdma.link_layer}
            card = {"firmware": self.rdma.firmware, "board": self.rdma.board}
            attributes |= {key: value for key, value in card.items() if value}
        if self.kind:
            attributes["interface_kind"] = self.kind
        return Device(
            device=self.name, kind=Kind.LINK, vendor=VENDOR, identity=identity, attributes=attributes
        )


def ports_of(
    interfaces: Iterable[Interface],
    rdma: Iterable[RdmaPort],
    *,
    place_of: Callable[[str], PortPlace | None],
    chips_of: Callable[[Sequence[str], PortPlace | None], tuple[str, ...]],
    watch: Sequence[str] = (),
    expected: Sequence[str] = (),
) -> dict[str, Port]:
    """The ports by name. ``watch`` are patterns of further interfaces, ``expected`` the names of ports that
    should be up.
    """
    listed = sorted(interfaces, key=lambda interface: interface.index)
    places = {interface.index: place_of(interface.name) for interface in listed}
    by_place = {(port.place.pci, port.place.number): port for port in rdma}
    found: list[Port] = []
    taken: set[tuple[str, int]] = set()
    for interface in listed:
        place = places[interface.index]
        if place is not None and (place.pci, place.number) not in taken:
            taken.add((place.pci, place.number))
            found.append(_port(interface, place, by_place.get((place.pci, place.number))))
        elif place is None and _is_wanted(interface.name, (*watch, *expected)):
            found.append(_port(interface, None, None))
    found += [
        Port(name=port.name, place=port.place, rdma=port)
        for where, port in by_place.items()
        if where not in taken
    ]
    found = _with_bonds(found, {interface.index: interface for interface in listed})
    ports = {port.name: port for port in (_judged(port, found, expected, chips_of, listed) for port in found)}
    for name in expected:
        if not any(_is_called(port, name, listed) for port in ports.values()):
            ports[name] = Port(name=name, is_expected=True, is_needed=True, chips=chips_of((name,), None))
    return ports


def _port(interface: Interface, place: PortPlace | None, rdma: RdmaPort | None) -> Port:
    is_infiniband = rdma is not None and rdma.link_layer == INFINIBAND
    name = rdma.name if rdma is not None and is_infiniband else shown(interface.name)
    return Port(name=name, index=interface.index, place=place, rdma=rdma, kind=interface.kind)


def _with_bonds(found: list[Port], by_index: Mapping[int, Interface]) -> list[Port]:
    """The bonds of watched ports are watched too."""
    members: dict[int, list[int]] = {}
    for port in found:
        if port.index and (bond := by_index[port.index].bond) in by_index:
            members.setdefault(bond, []).append(port.index)
    here = {port.index for port in found}
    bonds = [
        Port(name=shown(by_index[bond].name), index=bond, kind=by_index[bond].kind)
        for bond in members
        if bond not in here
    ]
    return [replace(port, members=tuple(members.get(port.index, ()))) for port in (*found, *bonds)]


def _judged(
    port: Port,
    found: Sequence[Port],
    expected: Sequence[str],
    chips_of: Callable[[Sequence[str], PortPlace | None], tuple[str, ...]],
    listed: Sequence[Interface],
) -> Port:
    """Whether jobs need it, and which chips are behind it: those of its members are a bond's too."""
    is_member = any(port.index in other.members for other in found if port.index)
    is_expected = any(_is_called(port, name, listed) for name in expected)
    members = [other for other in found if other.index and other.index in port.members]
    does_rdma = any(each.rdma is not None for each in (port, *members))
    names = (port.name, port.rdma.name if port.rdma is not None else port.name)
    chips = chips_of(names, port.place)
    for member in members:
        chips += tuple(chip for chip in chips_of((member.name,), member.place) if chip not in chips)
    return replace(
        port,
        is_expected=is_expected,
        is_needed=is_expected or (does_rdma and not is_member),
        chips=chips,
    )


def _is_called(port: Port, name: str, listed: Sequence[Interface]) -> bool:
    """Whether that is the port's name: the one that is shown, its RDMA port's, or its interface's."""
    if name == port.name or (port.rdma is not None and name == port.rdma.name):
        return True
    return any(interface.index == port.index and interface.name == name for interface in listed)


def _is_wanted(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def shown(name: str) -> str:
    """The kernel lets an interface have nearly any name; a name that would mean something else is marked."""
    return f"port:{name}" if _NAME_OF_ANOTHER.fullmatch(name) else quote(name, safe=_SAFE)
