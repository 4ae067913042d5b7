"""The faults of the UnifiedBus switch chips: those that stand, and the events that subscribers receive."""

import time
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.emulator.shared.layout import LIMITS
from nodeagent.emulator.shared.state import State

CHIP_LEVEL: Final = 0xFFFF
"""The port of a fault of a whole switch chip."""
NO_SUB_TYPE: Final = 0xFFFFFFFF
"""What the vendor's driver sends for a port that is down."""

RING_IS_FULL: Final = "[lqdcmi]Queue is full, cannot write to shared memory"


@dataclass(frozen=True, slots=True)
class FabricFault:
    """One fault in the vendor's words; peers are 0 CPU, 1 NPU, 2 L2 switch. Everything is sent as it is."""

    event_type: int
    chip: int
    port: int = CHIP_LEVEL
    sub_type: int = NO_SUB_TYPE
    peer_device: int = 0
    peer_port: int = 0
    severity: int = 2


class TooManyFabricFaults(ValueError):
    """No more faults can stand on the switches."""


def _matches(row: Any, fault: FabricFault) -> bool:
    identity = ("event_type", "sub_type", "peer_device", "peer_port", "chip", "port")
    return all(getattr(row, name) == getattr(fault, name) for name in identity)


def fabric_standing(state: State) -> list[FabricFault]:
    """What stands, oldest first."""
    rows = state.fabric[: state.node.fabric_fault_count]
    names = FabricFault.__slots__
    return [FabricFault(**{name: getattr(row, name) for name in names}) for row in rows]


def raise_fabric(state: State, fault: FabricFault) -> None:
    """Lets a fault stand; the same one standing already stays. Raises ``TooManyFabricFaults``."""
    with state.locked():
        count = int(state.node.fabric_fault_count)
        if any(_matches(row, fault) for row in state.fabric[:count]):
            return
        if count == LIMITS["FABRIC_FAULTS"]:
            raise TooManyFabricFaults(f"{count} faults stand already: clear some first")
        row = state.fabric[count]
        for name in FabricFault.__slots__:
            setattr(row, name, getattr(fault, name))
        row.serial, row.raised_ms = state.node.next_serial + 1, time.time_ns() // 1_000_000
        state.node.fabric_fault_count = count + 1


def clear_fabric(state: State, fault: FabricFault) -> None:
    """Takes a fault away, if it stands."""
    with state.locked():
        kept = 0
        for place in range(state.node.fabric_fault_count):
            if not _matches(state.fabric[place], fault):
                state.fabric[kept] = state.fabric[place]
                kept += 1
        state.node.fabric_fault_count = kept


def send_fabric_event(state: State, fault: FabricFault, assertion: int) -> str:
    """Sends it to all, whatever stands. Assertion 0 is recover, 1 fault. What the kernel log says of it.

    The driver goes through their rings, the newest process's first, and stops where one is full
    (``write_shared_memory`` of lqdrv/kernel/pci-dev.c): where that is the newest's, nobody is notified.
    """
    if state.node.fabric_ring_is_full:
        return RING_IS_FULL
    place = (fault.sub_type, fault.peer_device, fault.peer_port, fault.chip, fault.port)
    with state.locked():
        state.post(
            library=LIMITS["LIBRARY_LINGQU"],
            chip=-1,
            code=fault.event_type,
            assertion=assertion,
            severity=fault.severity,
            data=(*place, 0, 0, 0),
            unterminated=state.node.unterminated,
        )
    return ""
