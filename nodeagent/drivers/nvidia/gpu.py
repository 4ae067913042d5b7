"""One GPU: who it is, and everything that one poll of it reads.

    identity ── state: codes that are active ── telemetry: readings ── processes: holders

All calls for it are made by the thread that polls it, but for its events and, at the start, its
identity. What changes slowly is read at every ``SELDOM``-th poll and told with each.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pynvml
from msgspec.structs import replace

from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.drivers.nvidia import fabric, identity, processes
from nodeagent.drivers.nvidia.calls import Calls, GpuFault, Readings
from nodeagent.drivers.nvidia.ecc import Memory
from nodeagent.drivers.nvidia.events import Events, Tell
from nodeagent.drivers.nvidia.groups import LINKED
from nodeagent.drivers.nvidia.nvlink import INACTIVE, Links, Peers
from nodeagent.drivers.nvidia.state import RECOVERY_ACTION, Recovery
from nodeagent.drivers.nvidia.telemetry import SlowdownMinutes, Telemetry
from nodeagent.drivers.pci import PciFunction
from nodeagent.worker.protocol import Active, Device

SELDOM: Final = 5
DESCRIBE: Final = 60
"""At every so many polls the slow readings are taken, and the GPU is described anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all GPUs of the node share. ``pci``: functions by address; ``versions``: of driver and library;
    ``switches``: PCI lists NVSwitches.
    """

    procfs: Path
    pci: Mapping[str, PciFunction]
    switches: bool
    versions: Mapping[str, str]
    peers: Peers
    tell: Tell


@dataclass(slots=True)
class _Slow:
    """What was read at the last slow poll."""

    values: Mapping[str, float] = field(default_factory=dict)
    codes: tuple[str, ...] = ()
    complete: bool = True


class _Part:
    """The readers for one handle: they remember what that part does not support."""

    def __init__(self, handle: Any, name: str, product: str, around: Surroundings) -> None:
        self.calls = Calls(handle)
        self.recovery = Recovery(self.calls)
        self.memory = Memory(self.calls)
        self.links = Links(self.calls, name, product, around.peers)
        self.telemetry = Telemetry(self.calls)
        self.minutes = SlowdownMinutes()
        self.slow = _Slow()
        self.events = Events(name, handle, around.tell, told_by_state=self._told_by_state)

    def _told_by_state(self, xid: int) -> bool:
        return xid == RECOVERY_ACTION and self.recovery.told


class Gpu:
    """By its index. ``device`` is how it was last described."""

    def __init__(self, index: int, around: Surroundings) -> None:
        self.device: Device = identity.unread(index)
        self._index = index
        self._around = around
        self._part: _Part | None = None
        self._refused_before = 0
        self._turn = 0

    @property
    def refused(self) -> int:
        """How many values were refused."""
        part = self._part
        now = part.calls.refused + part.events.refused if part is not None else 0
        return self._refused_before + now

    def open(self) -> None:
        """What may take seconds where nothing keeps it initialised. Raises ``GpuFault`` and ``CallFailed``."""
        self._handle()

    def identify(self) -> None:
        """Ask who it is. Raises ``GpuFault`` and ``CallFailed``."""
        self._identify(listen=False)

    def poll(self) -> Reading:
        """Everything. Raises ``CallFailed`` where it answers nothing, or is no longer there to answer."""
        codes: list[str] = []
        values: dict[str, float] = {}
        try:
            if self._part is None or self._turn % DESCRIBE == 0:
                self._identify(listen=True)
            part = self._same_part()
            part.calls.turn()
            return self._read(part, codes, values)
        except GpuFault as fault:
            active = tuple(Active(code=code) for code in (*codes, fault.code))
            return Reading(active=active, complete=False, readings=values)

    def end(self) -> None:
        if self._part is not None:
            self._part.events.end()

    # ------------------------------------------------------------------ one poll

    def _read(self, part: _Part, codes: list[str], values: dict[str, float]) -> Reading:
        """``codes`` and ``values`` are filled as they are read: a fault midway takes none back."""
        calls = part.calls
        readings = Readings(calls, values)
        part.events.heal()
        codes += part.recovery.each_second(readings)
        codes += part.memory.each_second(readings)
        codes += fabric.read(calls, readings)
        links = part.links.each_second(readings)
        if self.device.attributes.get("mig") == "enabled":
            # A GPU that is cut in pieces uses no links.
            links = [code for code in links if code != INACTIVE]
        codes += links
        complete = not calls.failed
        bits = part.telemetry.each_second(readings)
        part.minutes.see(bits, time.monotonic())
        readings.put("hw_slowdown_minutes_total", part.minutes.total)
        held = processes.holders(calls, self._around.procfs)
        if self._turn % SELDOM == 0:
            part.slow = self._seldom(part)
        self._turn += 1
        codes += [code for code in part.slow.codes if code not in codes]
        values |= {name: value for name, value in part.slow.values.items() if name not in values}
        if calls.failed and not calls.answered:
            raise CallFailed(calls.failed[0], errno=calls.failed_number)
        return Reading(
            active=tuple(Active(code=code) for code in codes),
            complete=complete and part.slow.complete,
            readings=values,
            holders=held,
        )

    def _seldom(self, part: _Part) -> _Slow:
        values: dict[str, float] = {}
        readings = Readings(part.calls, values)
        failed = len(part.calls.failed)
        codes = part.memory.flags(readings)
        complete = len(part.calls.failed) == failed
        part.memory.counters(readings)
        part.telemetry.seldom(readings)
        part.links.seldom(readings)
        return _Slow(values=values, codes=tuple(codes), complete=complete)

    # ------------------------------------------------------------------ who it is

    def _identify(self, *, listen: bool) -> None:
        """``listen``: to another part's events before it is told that there is one."""
        handle = self._handle()
        calls = Calls(handle)
        described = identity.describe(self._index, calls, self._around.pci, switches=self._around.switches)
        if calls.failed and not calls.answered:
            raise CallFailed(calls.failed[0], errno=calls.failed_number)
        attributes = {**described.attributes, **self._around.versions}
        before = self.device
        if before.identity and described.identity in ("", before.identity):
            # What could not be read this time has not gone for that.
            described = replace(described, identity=before.identity)
            attributes = {**before.attributes, **attributes}
            if before.attributes.get("group") == LINKED:
                # Links that have gone down joined it to others, and do so again after the reset.
                attributes["group"] = LINKED
        described = replace(described, attributes=attributes)
        part = self._part
        if part is None or _is_another(before, described):
            part = self._take_up(handle, attributes.get("product", ""))
            if listen:
                part.events.heal()
        if not part.events.supported:
            attributes["events"] = "none"
        self.device = described
        self._refused_before += calls.refused

    def _handle(self) -> Any:
        calls = Calls(self._index)
        handle = calls.ask(pynvml.nvmlDeviceGetHandleByIndex)
        if handle is None:
            raise CallFailed(calls.failed[0] if calls.failed else f"no GPU has the index {self._index}")
        return handle

    def _same_part(self) -> _Part:
        """The part in that slot, described anew if it is another than it was."""
        assert self._part is not None, "identify has taken it up"
        calls = self._part.calls
        calls.turn()
        uuid = identity.uuid(calls)
        if uuid and uuid != self.device.identity:
            self._identify(listen=True)
        return self._part

    def _take_up(self, handle: Any, product: str) -> _Part:
        if self._part is not None:
            self._refused_before = self.refused
            self._part.events.end()
        self._part = _Part(handle, self.device.device, product, self._around)
        self._turn = 0
        return self._part


def _is_another(before: Device, after: Device) -> bool:
    """Another part, or the same one cut differently: what it supports is another matter then."""
    mig = before.attributes.get("mig") != after.attributes.get("mig")
    return before.identity != after.identity or mig
