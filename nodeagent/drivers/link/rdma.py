"""The ports of RDMA devices (InfiniBand, RoCE), from /sys/class/infiniband.

Source: Documentation/ABI/stable/sysfs-class-infiniband of Linux. The counters of InfiniBand saturate: one
that stands at its highest value rises no more until somebody clears it. Nothing is judged here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.link.place import Place, names, place_of_device

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

    ``firmware`` and ``board`` are the card's, "" where the driver does not say them.
    """

    device: str
    number: int
    place: Place
    link_layer: str
    folder: Path
    firmware: str = ""
    board: str = ""

    @property
    def name(self) -> str:
        return self.device if self.number == 1 else f"{self.device}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaState:
    """``words`` are its state and its physical state as the kernel writes them."""

    is_active: bool
    is_disabled: bool
    words: str
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
    """Raises ``CallFailed`` where sysfs cannot be read, or says what makes no sense."""
    state, physical = _numbered(port.folder / "state"), _numbered(port.folder / "phys_state")
    rate = _RATE.fullmatch(_read(port.folder / "rate"))
    if rate is None:
        raise CallFailed(f"{port.folder / 'rate'} holds no rate such as 400 Gb/sec (4X NDR)")
    return RdmaState(
        is_active=state[1] == _ACTIVE,
        is_disabled=physical[1] == _DISABLED,
        words=f"{state[2]}, {physical[2]}",
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
