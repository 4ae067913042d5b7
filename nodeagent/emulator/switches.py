"""The UnifiedBus switch chips and their faults: those that are active, and the events that subscribers
receive.
"""

import time
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.npus import OCCUR, RECOVER
from nodeagent.emulator.state import EmulatorState

CHIP_LEVEL: Final = 0xFFFF
"""The port of a fault of a whole switch chip."""
NO_SUB_TYPE: Final = 0xFFFFFFFF
"""What the vendor's driver sends for a port that is down."""

RING_IS_FULL: Final = "[lqdcmi]Queue is full, cannot write to shared memory"


@dataclass(frozen=True, slots=True)
class FabricFault:
    """One fault in the vendor's numbers; peers are 0 CPU, 1 NPU, 2 L2 switch. Everything is sent as it is."""

    event_type: int
    chip: int
    port: int = CHIP_LEVEL
    sub_type: int = NO_SUB_TYPE
    peer_device: int = 0
    peer_port: int = 0
    severity: int = 2


class TooManyFabricFaults(ValueError):
    """No more faults can be active on the switches."""


def _matches(row: Any, fault: FabricFault) -> bool:
    identity = ("event_type", "sub_type", "peer_device", "peer_port", "chip", "port")
    return all(getattr(row, name) == getattr(fault, name) for name in identity)


class Switches:
    """``node.switches`` of an ``EmulatedNode``; every method is done when it returns."""

    def __init__(self, state: EmulatorState) -> None:
        self._state = state

    def raise_fault(self, fault: FabricFault, *, deliver: bool = True, stand: bool = True) -> str:
        """A fault of a switch chip or port begins; as ``raise_code``. The line of the kernel log, or ""."""
        if stand:
            self._add(fault)
        return self.send_event(fault, OCCUR) if deliver else ""

    def clear_fault(self, fault: FabricFault, *, deliver: bool = True) -> str:
        """It ends; ``deliver=False``: no event is sent. As ``raise_fault``."""
        self._remove(fault)
        return self.send_event(fault, RECOVER) if deliver else ""

    def fill_ring(self) -> None:
        """Fill the ring of the newest process that has subscribed to the switches, and no longer takes
        anything.
        """
        self._state.node.fabric_ring_is_full = True

    def standing(self) -> list[FabricFault]:
        """The active faults, oldest first."""
        rows = self._state.fabric[: self._state.node.fabric_fault_count]
        names = FabricFault.__slots__
        return [FabricFault(**{name: getattr(row, name) for name in names}) for row in rows]

    def _add(self, fault: FabricFault) -> None:
        """Makes a fault active; an active one stays as it is. Raises ``TooManyFabricFaults``."""
        with self._state.locked():
            count = int(self._state.node.fabric_fault_count)
            if any(_matches(row, fault) for row in self._state.fabric[:count]):
                return
            if count == LIMITS["FABRIC_FAULTS"]:
                raise TooManyFabricFaults(f"{count} faults are active already: clear some first")
            row = self._state.fabric[count]
            for name in FabricFault.__slots__:
                setattr(row, name, getattr(fault, name))
            row.serial, row.raised_ms = self._state.node.next_serial + 1, time.time_ns() // 1_000_000
            self._state.node.fabric_fault_count = count + 1

    def _remove(self, fault: FabricFault) -> None:
        """Ends a fault, if it is active."""
        with self._state.locked():
            kept = 0
            for place in range(self._state.node.fabric_fault_count):
                if not _matches(self._state.fabric[place], fault):
                    self._state.fabric[kept] = self._state.fabric[place]
                    kept += 1
            self._state.node.fabric_fault_count = kept

    def send_event(self, fault: FabricFault, assertion: int) -> str:
        """Sends it to all, whatever is active. Assertion 0 is recover, 1 fault. The line of the kernel log
        about it.

        The driver goes through their rings, the newest process's first, and stops where one is full
        (``write_shared_memory`` of lqdrv/kernel/pci-dev.c): where that is the newest's, no process gets it.
        """
        if self._state.node.fabric_ring_is_full:
            return RING_IS_FULL
        place = (fault.sub_type, fault.peer_device, fault.peer_port, fault.chip, fault.port)
        with self._state.locked():
            self._state.post(
                library=LIMITS["LIBRARY_LINGQU"],
                chip=-1,
                code=fault.event_type,
                assertion=assertion,
                severity=fault.severity,
                data=(*place, 0, 0, 0),
                unterminated=self._state.node.unterminated,
            )
        return ""
