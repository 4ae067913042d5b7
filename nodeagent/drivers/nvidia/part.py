"""The readers of one GPU, for as long as the same part is in its slot, and what they read seldom.

They remember what that part refuses. When what is read is decided by ``gpu``.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia import identity
from nodeagent.drivers.nvidia.baseline import Baseline, Baselines, Question
from nodeagent.drivers.nvidia.calls import UNSUPPORTED, Calls, Readings
from nodeagent.drivers.nvidia.checks import fabric, persistence
from nodeagent.drivers.nvidia.checks.c2c import C2C_CODES, C2c
from nodeagent.drivers.nvidia.checks.ecc import ROW_CODES, Flag, Memory
from nodeagent.drivers.nvidia.checks.fabric import FABRIC_CODES
from nodeagent.drivers.nvidia.checks.inforom import INFOROM_CODES, Inforom
from nodeagent.drivers.nvidia.checks.nvlink import LINK_CODES, Board, Links, Peers
from nodeagent.drivers.nvidia.checks.pcie import PciExpress
from nodeagent.drivers.nvidia.checks.persistence import PERSISTENCE_CODES
from nodeagent.drivers.nvidia.checks.slowdown import SlowdownMinutes
from nodeagent.drivers.nvidia.checks.telemetry import Telemetry
from nodeagent.drivers.nvidia.checks.thermal import Thermal
from nodeagent.drivers.nvidia.events import Doubles, Events, Owner, Report
from nodeagent.drivers.nvidia.processes import Processes
from nodeagent.drivers.nvidia.recovery_action import RECOVERY_ACTION, Recovery
from nodeagent.drivers.shared.pci import PciFunction
from nodeagent.wire import Active, Device

_EVENTS: Final[Question] = ("nvmlDeviceRegisterEvents",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all GPUs of the node share. ``pci``: functions by address; ``versions``: of driver and library;
    ``switches``: PCI lists NVSwitches; ``is_shared``: tenants share them. ``uses_links`` is false where the
    driver was told not to use NVLink, ``links_may_train`` while links may be on their way up. ``owner_of``:
    the GPU of a handle.
    """

    procfs: Path
    pci: Mapping[str, PciFunction]
    switches: bool
    is_shared: Callable[[], bool]
    uses_links: Callable[[], bool]
    links_may_train: Callable[[], bool]
    versions: Mapping[str, str]
    baselines: Baselines
    peers: Peers
    doubles: Doubles
    owner_of: Callable[[Any], Owner | None]
    report: Report


@dataclass(slots=True)
class Slow:
    """What was read at the last slow poll."""

    values: Mapping[str, float] = field(default_factory=dict)
    active: Mapping[str, Active] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


class Codes:
    """The active codes as the readers of a GPU find them, and of which they could not say whether they
    are.
    """

    def __init__(self, calls: Calls, baseline: Baseline) -> None:
        self.active: dict[str, Active] = {}
        self._calls = calls
        self._baseline = baseline
        self._asked: set[str] = set()
        self._failed: set[str] = set()
        self._judged: set[str] = set()

    def take(self, finds: frozenset[str], read: Callable[[], Iterable[str | Active] | None]) -> None:
        """``finds`` are all the codes that ``read`` may find, without what refines them; None: it cannot
        say.
        """
        failed = len(self._calls.failed)
        found = read()
        for each in found or ():
            active = Active(code=each) if isinstance(each, str) else each
            self.active.setdefault(active.code, active)
        self._asked |= finds
        if len(self._calls.failed) > failed:
            self._failed |= finds
        elif found is not None:
            self._judged |= finds
            self._baseline.judge(finds)

    def fail(self, finds: frozenset[str]) -> None:
        """What says whether these are there has failed."""
        self._asked |= finds
        self._failed |= finds

    @property
    def lost(self) -> frozenset[str]:
        """What could not be asked for: the question failed, or is refused though it was answered before."""
        silent = self._asked - self._judged - self._failed
        return frozenset({*self._failed, *filter(self._baseline.was_judged, silent)})

    @property
    def unread(self) -> frozenset[str]:
        """What none of these may end: also what only an earlier worker, or another driver, has seen."""
        silent = self._asked - self._judged - self._failed
        return self.lost | frozenset(filter(self._baseline.is_unseen, silent))


class Part:
    """The readers for one handle: they remember what that part refuses.

    ``asked``: everything is to be read at the next poll; ``wanted`` are the codes by which its driver wanted
    something done at the last.
    """

    def __init__(self, handle: Any, described: Device, around: Surroundings) -> None:
        self.baseline = around.baselines.of(described.identity)
        self.calls = Calls(handle, self.baseline)
        self.baseline.begin(_mode(self.calls, described, around))
        self.recovery = Recovery(self.calls)
        self.memory = Memory(self.calls)
        self.flags: Sequence[Flag] = (
            *self.memory.flags,
            (INFOROM_CODES, Inforom(self.calls).read),
            (C2C_CODES, C2c(self.calls, baseline=self.baseline).read),
            (PERSISTENCE_CODES, partial(persistence.read, self.calls)),
        )
        product = described.attributes.get("product", "")
        self.links = Links(self.calls, described.device, product, around.peers, self.baseline)
        self.telemetry = Telemetry(self.calls)
        self.thermal = Thermal(self.calls)
        self.pci_express = PciExpress(self.calls)
        self.processes = Processes(self.calls, around.procfs)
        self.minutes = SlowdownMinutes()
        self.slow = Slow()
        self.asked = True
        self.wanted: list[str] = []
        self._around = around
        self._handle = handle
        self._was_divided = described.attributes.get("mig") == "enabled"
        self.owner = Owner(
            device=described.device, known_by_state=self._known_by_state, is_divided=self._is_divided
        )
        self.events = Events(self.owner, handle, around.report, around.owner_of, around.doubles)

    def news(self) -> None:
        """Something has happened to it: all is asked at the next poll, also what was refused."""
        self.asked = True
        self.calls.ask_again()

    def see_events(self) -> None:
        """Whether its events are heard is a question like any other."""
        number = self.events.refusal
        if number is None:
            self.calls.take_answer(_EVENTS)
        elif number in UNSUPPORTED:
            self.calls.take_refusal(_EVENTS, number)
        else:
            self.calls.unanswered[_EVENTS] = number

    def _known_by_state(self, xid: int) -> bool:
        return xid == RECOVERY_ACTION and self.recovery.names_action

    def _is_divided(self) -> bool:
        """Asked anew where it was not when it was described: events come before polls notice."""
        if self._was_divided:
            return True
        try:
            current, _ = pynvml.nvmlDeviceGetMigMode(self._handle)
        except pynvml.NVMLError:
            return False
        return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)

    def seldom(self, device: Device) -> Slow:
        """What is asked seldom; ``device`` is how the part was last described. Raises as ``Calls.ask``."""
        values: dict[str, float] = {}
        readings, codes = Readings(self.calls, values), Codes(self.calls, self.baseline)
        codes.take(ROW_CODES, lambda: self.memory.rows(readings))
        failed = len(self.calls.failed)
        state = fabric.ask(self.calls)
        has_fabric_failed = len(self.calls.failed) > failed
        codes.take(LINK_CODES, lambda: self.links.states(readings, self._board(device, state)))
        is_shared, has_switches = self._around.is_shared, self.links.lead_to_switches
        if has_fabric_failed:
            codes.fail(FABRIC_CODES)
        else:
            codes.take(FABRIC_CODES, lambda: fabric.codes(state, readings, is_shared, has_switches))
        for finds, read in self.flags:
            codes.take(finds, partial(read, readings))
        self.minutes.see(self.telemetry.gauges(readings), time.monotonic(), readings)
        self.thermal.read(readings)
        self.memory.counters(readings)
        sees_slot = not identity.is_in_guest(device)
        self.pci_express.read(readings, time.monotonic(), sees_slot=sees_slot)
        self.links.errors(readings)
        self.processes.seldom()
        return Slow(values=values, active=codes.active, unread=codes.unread, lost=codes.lost)

    def _board(self, device: Device, state: fabric.Fabric | None) -> Board:
        """A GPU that is cut in pieces uses no links; of a guest's share of one nobody knows."""
        attributes = device.attributes
        is_in_guest = identity.is_in_guest(device)
        return Board(
            joined=fabric.is_joined(state) or (self._around.switches and not is_in_guest),
            is_sxm="SXM" in attributes.get("product", "").upper() and not is_in_guest,
            is_in_guest=is_in_guest,
            unused=attributes.get("mig") == "enabled" or not self._around.uses_links(),
            may_train=self._around.links_may_train() and not fabric.is_joined(state),
        )


def _mode(calls: Calls, described: Device, around: Surroundings) -> tuple[str | None, ...]:
    ecc = calls.ask(pynvml.nvmlDeviceGetEccMode)
    return (
        around.versions.get("driver"),
        described.attributes.get("mig"),
        None if ecc is None else str(ecc[0]),
    )
