"""The faults that a Huawei BMC lists now, by its own command: the whole list or none.

The list has pages, and may change between two of them: if a fault ends, the faults after it move up, and one
is skipped. So a list of more than one page is valid only if two readings in a row are equal. An answer that
cannot be parsed is a failed call, never an empty list.

Source: MindCluster's NodeD, component/noded/pkg/monitoring/ipmimonitor/ipmi_monitor.go and pkg/common.
It skips pages that it cannot parse, as if they had no fault.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.bmc.ipmi import BmcSession
from nodeagent.wire import Active

HUAWEI: Final = 2011
"""Its enterprise number at IANA: that in Get Device ID, and in the request itself."""

NETFN: Final = 0x30
COMMAND: Final = 0x94
REQUEST: Final = bytes((0xDB, 0x07, 0x00, 0x40, 0x00))
REQUEST_END: Final = bytes((0x0E, 0xFF))

MAX_PAGES: Final = 100
MAX_READINGS: Final = 4
MAX_CODES: Final = 1000
"""Fewer than a list of active codes may have."""

MAX_PARTS_CHARACTERS: Final = 256
"""So that all codes together fit into one message to the daemon."""

HEAD_BYTES: Final = 7
FAULT_BYTES: Final = 15

WHAT: Final = "list of faults"


@dataclass(frozen=True, slots=True, order=True)
class ListedFault:
    """``severity``, ``part_type`` and ``part`` are the vendor's numbers."""

    code: int
    severity: int
    part_type: int
    part: int


@dataclass(frozen=True, slots=True)
class FaultList:
    """Not ``complete``: these are shown, and others may be."""

    faults: tuple[ListedFault, ...]
    complete: bool

    @property
    def active(self) -> tuple[Active, ...]:
        """One for each code, whatever number of parts has it."""
        by_code: dict[int, list[ListedFault]] = {}
        for fault in sorted(self.faults):
            by_code.setdefault(fault.code, []).append(fault)
        listed = islice(by_code.items(), MAX_CODES)
        return tuple(Active(code=f"{code:08X}", evidence=_evidence(same)) for code, same in listed)


def read(session: BmcSession) -> FaultList:
    """Raises ``CallFailed``."""
    before: FaultList | None = None
    found: set[ListedFault] = set()
    for _ in range(MAX_READINGS):
        faults, pages = _read_once(session)
        is_whole = pages <= MAX_PAGES and len({fault.code for fault in faults}) <= MAX_CODES
        now = FaultList(tuple(sorted(faults)), complete=is_whole)
        found.update(faults)
        if pages <= 1 or now == before:
            return now
        before = now
    return FaultList(tuple(sorted(found)), complete=False)


def _read_once(session: BmcSession) -> tuple[Sequence[ListedFault], int]:
    """All faults, and on how many pages they came; more than ``MAX_PAGES``: there are further ones."""
    faults: list[ListedFault] = []
    for page in range(1, MAX_PAGES + 1):
        start = len(faults).to_bytes(2, "little")
        total, some = _understood(session.ask(WHAT, NETFN, COMMAND, REQUEST + start + REQUEST_END))
        faults += some
        if len(faults) == total:
            return faults, page
        if len(faults) > total or not some:
            raise CallFailed(f"{WHAT}: the BMC gave {len(faults)} faults of {total}")
    return faults, MAX_PAGES + 1


def _understood(answer: bytes) -> tuple[int, Sequence[ListedFault]]:
    """The number of all faults, and those in this answer."""
    if len(answer) < HEAD_BYTES:
        raise CallFailed(f"{WHAT}: the answer has {len(answer)} bytes, at least {HEAD_BYTES} are right")
    total, count, body = int.from_bytes(answer[3:5], "little"), answer[5], answer[HEAD_BYTES:]
    if len(body) != count * FAULT_BYTES:
        raise CallFailed(f"{WHAT}: {len(body)} bytes for {count} faults, {count * FAULT_BYTES} are right")
    places = range(0, len(body), FAULT_BYTES)
    return total, [_fault(body[place : place + FAULT_BYTES]) for place in places]


def _fault(entry: bytes) -> ListedFault:
    return ListedFault(int.from_bytes(entry[0:4], "little"), entry[8], entry[9], entry[10])


def _evidence(faults: Iterable[ListedFault]) -> dict[str, str]:
    same = tuple(faults)
    severity = str(max(fault.severity for fault in same))
    parts = ", ".join(dict.fromkeys(f"type {fault.part_type} number {fault.part}" for fault in same))
    return {"severity": severity, "parts": parts[:MAX_PARTS_CHARACTERS]}
