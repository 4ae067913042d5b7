"""All that is read of one GPU as long as the same part is in its slot: its state, its users, its recovery
action.

An object here remembers which questions that part refuses, and reads some of them seldom; ``gpu`` decides
when. The state is the list of codes that are active now. Events report what happens while the worker runs;
the state shows what happened before and what has ended.

Users are the processes that compute, draw or share the GPU by MPS. Compute processes are listed at each poll.
The list of drawing processes takes milliseconds and blocks the submission of work, so it is read seldom.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia import identity
from nodeagent.drivers.nvidia.checks import fabric, telemetry
from nodeagent.drivers.nvidia.checks.fabric import FABRIC_CODES
from nodeagent.drivers.nvidia.checks.host_link import C2C_CODES, C2c, PciExpress
from nodeagent.drivers.nvidia.checks.memory import INFOROM_CODES, ROW_CODES, Flag, Inforom, MemoryState
from nodeagent.drivers.nvidia.checks.nvlink import LINK_CODES, Board, NvLinkCheck, Peers
from nodeagent.drivers.nvidia.checks.telemetry import PERSISTENCE_CODES, GpuTelemetry
from nodeagent.drivers.nvidia.checks.thermal import SlowdownMinutes, Thermal
from nodeagent.drivers.nvidia.events import Doubles, EventOwner, GpuEvents, Report
from nodeagent.drivers.nvidia.nvml.baseline import GpuBaseline, GpuBaselines, Question
from nodeagent.drivers.nvidia.nvml.calls import UNSUPPORTED, Calls, GpuReadings
from nodeagent.drivers.nvidia.nvml.fields import Field, FieldValues
from nodeagent.drivers.shared.pci import PciFunction
from nodeagent.drivers.shared.users import user_of
from nodeagent.wire import Active, Device, DeviceUser

MAX_HOLDERS: Final = 1024

_List = tuple[Callable[..., Any], Callable[..., Any]]
"""A list and its older version."""

_COMPUTING: Final[Sequence[_List]] = (
    (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2),
)
_OTHERS: Final[Sequence[_List]] = (
    (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
    (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2),
)


class GpuUsers:
    """The processes on one GPU."""

    def __init__(self, calls: Calls, procfs: Path) -> None:
        self._calls = calls
        self._procfs = procfs
        self._others: set[int] | None = None
        self._asked = False

    def seldom(self) -> None:
        """Those that draw or share it. Raises as ``Calls.ask``."""
        self._asked = False
        self._others = self._listed(_OTHERS)

    def users(self) -> tuple[DeviceUser, ...] | None:
        """Them, by pid; None if NVML does not know, which is not the same as none. Raises as ``Calls.ask``.

        A process that is listed and not there may have ended meanwhile. One that is listed again holds the
        GPU, unseen: it is of another namespace, or NVML's list has entries of another size than ours.
        """
        listed = self._all()
        found = self._seen(listed)
        if listed is not None and found is None:
            self.seldom()
            found = self._seen(self._all())
        return found

    def _all(self) -> set[int] | None:
        computing = self._listed(_COMPUTING)
        if computing is None or self._others is None or not self._asked:
            return None
        return computing | self._others

    def _listed(self, lists: Sequence[_List]) -> set[int] | None:
        """None where one failed, or is refused though it was there; one that the GPU never had is empty."""
        pids: set[int] = set()
        for newer, older in lists:
            listed = self._calls.newest((newer, list), (older, list), strict=True)
            if listed is not None:
                self._asked = True
                pids.update(process.pid for process in listed)
            elif not self._calls.lacks(older) or self._calls.is_lost(newer, older):
                return None
        return pids

    def _seen(self, pids: Collection[int] | None) -> tuple[DeviceUser, ...] | None:
        """None unless all of them are."""
        found = [user_of(self._procfs, pid) for pid in sorted(pids or ())[:MAX_HOLDERS]]
        seen = tuple(user for user in found if user is not None)
        return seen if pids is not None and len(seen) == len(found) else None


RECOVERY_ACTION: Final = 154
"""The Xid that reports a change of the recovery action; the field holds the action."""

RECOVERY_CODES: Final = frozenset({f"XID_{RECOVERY_ACTION}"})
"""What is reported here, without what refines it; so in the other readers of a GPU."""

_ACTION: Final[Field] = (pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0)
_RESET: Final[Field] = (pynvml.NVML_FI_DEV_RESET_STATUS, 0)
_DRAIN: Final[Field] = (pynvml.NVML_FI_DEV_DRAIN_AND_RESET_STATUS, 0)


class RecoveryActions:
    """What the driver wants done with the GPU: the code of Xid 154 with the action as its detail."""

    def __init__(self, calls: Calls) -> None:
        self._action = FieldValues(calls, [_ACTION])
        self._older = FieldValues(calls, [_RESET, _DRAIN])
        self._answered = False
        self._names_action = False

    @property
    def names_action(self) -> bool:
        """Whether the GPU names its action, as it did last; only then its Xid need not be reported."""
        return self._names_action

    def decides(self) -> bool:
        """Whether the driver has reported which recovery this GPU needs, even none: then that decides."""
        self._answered = self._answered or self._read() is not None
        return self._answered

    def each_second(self, readings: GpuReadings) -> list[str] | None:
        """Older drivers report only whether a reset is needed. None: this one does not."""
        action = self._read()
        if action is None and self._action.lacks(_ACTION):
            older = self._older.read()
            if not older:
                return None
            if older.get(_DRAIN):
                action = pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET
            elif older.get(_RESET):
                action = pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET
        readings.put("recovery_action", action, most=15)
        if action is not None and "recovery_action" not in readings.values:
            return None
        return [f"XID_{RECOVERY_ACTION}.{action:g}"] if action else []

    def _read(self) -> float | None:
        action = self._action.read().get(_ACTION)
        self._names_action = action is not None
        return action


_EVENTS: Final[Question] = ("nvmlDeviceRegisterEvents",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all GPUs of the node share. ``pci``: functions by address; ``versions``: of driver and library;
    ``switches``: PCI lists NVSwitches; ``is_shared``: tenants share them. ``uses_links`` is false where the
    driver was loaded without NVLink, ``links_may_train`` while links may be on their way up. ``owner_of``:
    the GPU of a handle.
    """

    procfs: Path
    pci: Mapping[str, PciFunction]
    switches: bool
    is_shared: Callable[[], bool]
    uses_links: Callable[[], bool]
    links_may_train: Callable[[], bool]
    versions: Mapping[str, str]
    baselines: GpuBaselines
    peers: Peers
    doubles: Doubles
    owner_of: Callable[[Any], EventOwner | None]
    report: Report


@dataclass(slots=True)
class Slow:
    """What was read at the last slow poll."""

    values: Mapping[str, float] = field(default_factory=dict)
    active: Mapping[str, Active] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


class Codes:
    """The active codes as the readers of a GPU find them, and those of which they could not find out whether
    they are.
    """

    def __init__(self, calls: Calls, baseline: GpuBaseline) -> None:
        self.active: dict[str, Active] = {}
        self._calls = calls
        self._baseline = baseline
        self._asked: set[str] = set()
        self._failed: set[str] = set()
        self._judged: set[str] = set()

    def take(self, finds: frozenset[str], read: Callable[[], Iterable[str | Active] | None]) -> None:
        """``finds`` are all the codes that ``read`` may find, without what refines them; None: they
        are not known.
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
        """The reader of these codes has failed."""
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


class GpuPart:
    """The readers for one handle: they remember what that part refuses.

    ``asked``: everything is to be read at the next poll; ``wanted`` are the codes by which its driver wanted
    something done at the last.
    """

    def __init__(self, handle: Any, described: Device, around: Surroundings) -> None:
        self.baseline = around.baselines.of(described.identity)
        self.calls = Calls(handle, self.baseline)
        self.baseline.begin(_mode(self.calls, described, around))
        self.recovery = RecoveryActions(self.calls)
        self.memory = MemoryState(self.calls)
        self.flags: Sequence[Flag] = (
            *self.memory.flags,
            (INFOROM_CODES, Inforom(self.calls).read),
            (C2C_CODES, C2c(self.calls, baseline=self.baseline).read),
            (PERSISTENCE_CODES, partial(telemetry.read, self.calls)),
        )
        product = described.attributes.get("product", "")
        self.links = NvLinkCheck(self.calls, described.device, product, around.peers, self.baseline)
        self.telemetry = GpuTelemetry(self.calls)
        self.thermal = Thermal(self.calls)
        self.pci_express = PciExpress(self.calls)
        self.processes = GpuUsers(self.calls, around.procfs)
        self.minutes = SlowdownMinutes()
        self.slow = Slow()
        self.asked = True
        self.wanted: list[str] = []
        self._around = around
        self._handle = handle
        self._was_divided = described.attributes.get("mig") == "enabled"
        self.owner = EventOwner(
            device=described.device, known_by_state=self._known_by_state, is_divided=self._is_divided
        )
        self.events = GpuEvents(self.owner, handle, around.report, around.owner_of, around.doubles)

    def news(self) -> None:
        """Something has happened to it: all is asked at the next poll, also what was refused."""
        self.asked = True
        self.calls.ask_again()

    def see_events(self) -> None:
        """Whether it sends events is a question like any other."""
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
        """Asked again if it was off when the GPU was described: events come before polls notice."""
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
        readings, codes = GpuReadings(self.calls, values), Codes(self.calls, self.baseline)
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

    def _board(self, device: Device, state: fabric.FabricCheck | None) -> Board:
        """A GPU in MIG mode uses no links; those of a guest's share are unknown."""
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
