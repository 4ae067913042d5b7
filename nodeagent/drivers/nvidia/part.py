"""The readers of one GPU, for as long as the same part is in its slot, and what they read seldom.

They remember what that part does not support. When what is read is decided by ``gpu``.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nodeagent.drivers.nvidia import identity
from nodeagent.drivers.nvidia.calls import Calls, Readings
from nodeagent.drivers.nvidia.checks import fabric, persistence
from nodeagent.drivers.nvidia.checks.c2c import C2C_CODES, C2c
from nodeagent.drivers.nvidia.checks.ecc import ROW_CODES, Flag, Memory
from nodeagent.drivers.nvidia.checks.fabric import FABRIC_CODES
from nodeagent.drivers.nvidia.checks.inforom import INFOROM_CODES, Inforom
from nodeagent.drivers.nvidia.checks.nvlink import LINK_CODES, Links, Peers
from nodeagent.drivers.nvidia.checks.pcie import PciExpress
from nodeagent.drivers.nvidia.checks.persistence import PERSISTENCE_CODES
from nodeagent.drivers.nvidia.checks.slowdown import SlowdownMinutes
from nodeagent.drivers.nvidia.checks.telemetry import Telemetry
from nodeagent.drivers.nvidia.checks.thermal import Thermal
from nodeagent.drivers.nvidia.events import Events, Report
from nodeagent.drivers.nvidia.processes import Processes
from nodeagent.drivers.nvidia.recovery_action import RECOVERY_ACTION, Recovery
from nodeagent.drivers.shared.pci import PciFunction
from nodeagent.wire import Device, Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all GPUs of the node share. ``pci``: functions by address; ``versions``: of driver and library;
    ``switches``: PCI lists NVSwitches; ``is_shared``: tenants share them.
    """

    procfs: Path
    pci: Mapping[str, PciFunction]
    switches: bool
    is_shared: Callable[[], bool]
    versions: Mapping[str, str]
    peers: Peers
    report: Report


@dataclass(slots=True)
class Slow:
    """What was read at the last slow poll."""

    values: Mapping[str, float] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()


class Codes:
    """The active codes as the readers of a GPU find them, and what readers could not ask for."""

    def __init__(self, calls: Calls, found: list[str]) -> None:
        self.found = found
        self.unread: set[str] = set()
        self._calls = calls

    def take(self, finds: frozenset[str], read: Callable[[], Iterable[str]]) -> None:
        """``finds`` are all the codes that ``read`` may find, without what refines them."""
        failed = len(self._calls.failed)
        self.found += [code for code in read() if code not in self.found]
        if len(self._calls.failed) > failed:
            self.unread |= finds


class Part:
    """The readers for one handle: they remember what that part does not support.

    ``asked``: everything is to be read at the next poll; ``wanted`` are the codes by which its driver wanted
    something done at the last.
    """

    def __init__(self, handle: Any, name: str, product: str, around: Surroundings) -> None:
        self.calls = Calls(handle)
        self.recovery = Recovery(self.calls)
        self.memory = Memory(self.calls)
        self.flags: Sequence[Flag] = (
            *self.memory.flags,
            (INFOROM_CODES, Inforom(self.calls).read),
            (C2C_CODES, C2c(self.calls).read),
            (PERSISTENCE_CODES, partial(persistence.read, self.calls)),
        )
        self.links = Links(self.calls, name, product, around.peers)
        self.telemetry = Telemetry(self.calls)
        self.thermal = Thermal(self.calls)
        self.pci_express = PciExpress(self.calls)
        self.processes = Processes(self.calls, around.procfs)
        self.minutes = SlowdownMinutes()
        self.slow = Slow()
        self.asked = True
        self.wanted: list[str] = []
        self._around = around
        self.events = Events(name, handle, self._report, known_by_state=self._known_by_state)

    def _report(self, signal: Signal) -> None:
        self.asked = True
        self._around.report(signal)

    def _known_by_state(self, xid: int) -> bool:
        return xid == RECOVERY_ACTION and self.recovery.names_action

    def seldom(self, device: Device) -> Slow:
        """What is asked seldom; ``device`` is how the part was last described. Raises as ``Calls.ask``."""
        values: dict[str, float] = {}
        readings, codes = Readings(self.calls, values), Codes(self.calls, [])
        codes.take(ROW_CODES, lambda: self.memory.rows(readings))
        codes.take(LINK_CODES, lambda: self._link_codes(device, readings))
        is_shared, has_switches = self._around.is_shared, self.links.lead_to_switches
        codes.take(FABRIC_CODES, lambda: fabric.read(self.calls, readings, is_shared, has_switches))
        for finds, read in self.flags:
            codes.take(finds, partial(read, readings))
        self.minutes.see(self.telemetry.gauges(readings), time.monotonic(), readings)
        self.thermal.read(readings)
        self.memory.counters(readings)
        sees_slot = not identity.is_in_guest(device)
        self.pci_express.read(readings, time.monotonic(), sees_slot=sees_slot)
        self.links.errors(readings)
        self.processes.seldom()
        return Slow(values=values, codes=tuple(codes.found), unread=frozenset(codes.unread))

    def _link_codes(self, device: Device, readings: Readings) -> list[str]:
        """A GPU that is cut in pieces uses no links."""
        codes = self.links.states(readings)
        return [] if device.attributes.get("mig") == "enabled" else codes
