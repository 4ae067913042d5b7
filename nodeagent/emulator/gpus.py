"""Everything that can happen to the GPUs of an emulated node, and the kernel lines of Xids and SXids.

As on ``EmulatedNode``, a method is done when it returns, and a GPU is named ``gpu<n>``. What works for every
kind of chip (hang, answer, drop, hold, set a field) is there. What a daemon should make of it is not known
here.
"""

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from nodeagent.emulator import processes
from nodeagent.emulator.layout import LIMITS, FieldError
from nodeagent.emulator.nvml import EmulatedDriver, set_gpu_identity, unsupported
from nodeagent.emulator.state import EmulatorState

TEXTS: Final[Mapping[int, str]] = {
    13: "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 1): Out Of Range Address",
    31: "MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x7f5c_4c000000. Fault is of type FAULT_PDE",
    43: "Ch 00000008, engmask 00000101",
    45: "Ch 00000008",
    48: "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6.",
    61: "Internal micro-controller breakpoint/warning",
    63: "Row Remapper: New row (0x0000000000000001) marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Failed to mark a row for remapping",
    74: "NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: "GPU has fallen off the bus.",
    92: "High single-bit ECC error rate",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
    95: "Uncontained: FBHUB. RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL)",
    120: "GSP task exception: memory access fault",
}
"""Xid -> the text after it in a line. Others have a text that names only the number."""
RECOVERY_ACTIONS: Final = (
    "None",
    "GPU Reset Required",
    "Node Reboot Required",
    "Drain P2P",
    "Drain and Reset",
    "Recover IMEX Domain",
    "Bus Reset",
    "System Reboot",
)
"""By NVML's number of the action."""

_KERNEL_ERROR: Final = "<3>"


@dataclass(frozen=True, slots=True)
class Instance:
    """The MIG instance that an Xid is attributed to, and its compute instance where that is known."""

    gpu: int
    compute: int | None = None


def xid_line(
    pci: str,
    xid: int,
    detail: str = "",
    *,
    process_id: int = 0,
    process_name: str = "",
    instance: Instance | None = None,
) -> str:
    """The line of an Xid of the GPU at ``dddd:bb:dd``; ``detail`` is in place of the usual text.

    Source: krcReportXid_IMPL in src/nvidia/src/kernel/gpu/rc/kernel_rc.c of open-gpu-kernel-modules.
    """
    process = f"pid={process_id}, name={process_name}" if process_id else "pid='<unknown>', name=<unknown>"
    text = detail or TEXTS.get(xid, f"Xid {xid} occurred")
    return f"NVRM: Xid (PCI:{pci}{_attributed(instance)}): {xid}, {process}, {text}"


def _attributed(instance: Instance | None) -> str:
    if instance is None:
        return ""
    compute = "" if instance.compute is None else f" GPU-CI:{instance.compute:02d}"
    return f" GPU-I:{instance.gpu:02d}{compute}"


def recovery_line(pci: str, before: int, after: int) -> str:
    """The line of Xid 154, which reports that another recovery action is due."""
    change = " to ".join(f"0x{action:x} ({RECOVERY_ACTIONS[action]})" for action in (before, after))
    return f"NVRM: Xid (PCI:{pci}): 154, GPU recovery action changed from {change}"


def sxid_line(switch: int, pci: str, sxid: int, *, fatal: bool, link: int, detail: str = "") -> str:
    """The line of an SXid of the switch of that number, at ``dddd:bb:dd.f``."""
    kind = "Fatal" if fatal else "Non-fatal"
    text = detail or f"SXid {sxid} occurred"
    return f"nvidia-nvswitch{switch}: SXid (PCI:{pci}): {sxid}, {kind}, Link {link:02d} {text}"


def write_line(log: Path, line: str) -> None:
    """Appends a line to a file, or gives it to the kernel where ``log`` is its device. Raises ``OSError``."""
    is_device = log.exists() and stat.S_ISCHR(log.stat().st_mode)
    with log.open("ab", buffering=0) as file:
        file.write(f"{_KERNEL_ERROR if is_device else ''}{line}\n".encode())


EVENT_DOUBLE_BIT_ECC: Final = 0x2
EVENT_XID: Final = 0x8
EVENT_RECOVERY_ACTION: Final = 0x8000
RESET_REQUIRED: Final = 16

LOCATIONS: Final = ("l1", "l2", "dram", "registers", "texture", "shared", "cbu", "sram")
"""In the order of NVML's memory locations."""
Location = Literal["l1", "l2", "dram", "registers", "texture", "shared", "cbu", "sram"]

_NO_INSTANCE: Final = 0xFFFFFFFF
_SLICE_BYTES: Final = 10 << 30


class Gpus:
    """``Gpus(node.state, node.nvml)`` for an ``EmulatedNode``."""

    def __init__(self, state: EmulatorState, library: Path) -> None:
        """``library`` is the emulated library next to the state."""
        self.driver: Final = EmulatedDriver(state, library)
        self._state = state

    def index(self, device: str) -> int:
        """The place of ``gpu<n>`` in the state file. Raises ``FieldError``."""
        chips = [i for i in range(self._state.node.chip_count) if self._kind(i) == LIMITS["KIND_GPU"]]
        names = [f"gpu{number}" for number in range(len(chips))]
        if device not in names:
            raise FieldError(f"{device}: the GPUs of this node are {', '.join(names) or 'none'}")
        return chips[names.index(device)]

    def _kind(self, index: int) -> int:
        return int(self._state.chips[index].kind)

    def chip(self, device: str) -> Any:
        """The fields of a GPU, to be read and written."""
        return self._state.chips[self.index(device)]

    def pci(self, device: str) -> str:
        """Its address as the kernel module writes it, ``dddd:bb:dd``."""
        chip = self.chip(device)
        return f"{chip.pci_domain:04x}:{chip.pci_bus:02x}:{chip.pci_device:02x}"

    def uuid(self, device: str) -> str:
        """Its UUID as NVML gives it."""
        return str(self.chip(device).gpu_uuid.decode())

    # --- events ---

    def raise_xid(
        self,
        device: str,
        xid: int,
        *,
        detail: str = "",
        process_id: int = 0,
        process_name: str = "python3",
        deliver: bool = True,
        kernel_log: Path | None = None,
        instance: Instance | None = None,
        recovery_action: int | None = None,
    ) -> None:
        """An Xid: sent to all that wait for events, and written to ``kernel_log``, where given.

        ``deliver=False``: only the line. ``detail`` is in place of the usual text of that Xid. ``instance``:
        the MIG instance that it is attributed to. ``recovery_action``: the driver asks for that one with it.
        """
        _check(device, "an Xid", xid, 1 << 63)
        if kernel_log is not None:
            line = xid_line(
                self.pci(device),
                xid,
                detail,
                process_id=process_id,
                process_name=process_name,
                instance=instance,
            )
            write_line(kernel_log, line)
        if deliver:
            self.post(device, EVENT_XID, xid, instance)
        if recovery_action is not None:
            self.set_recovery_action(device, recovery_action, deliver=deliver, kernel_log=kernel_log)

    def post(self, device: str, event_type: int, data: int = 0, instance: Instance | None = None) -> None:
        """Any event: NVML's number of its type and its data."""
        index = self.index(device)
        with self._state.locked():
            number = self._state.post(library=LIMITS["LIBRARY_NVML"], chip=index)
            event_data = self._state.events[number % LIMITS["EVENTS"]].data
            event_data[0], event_data[1], event_data[2], event_data[3] = (
                event_type,
                data,
                _NO_INSTANCE,
                _NO_INSTANCE,
            )
            if instance is not None:
                event_data[2] = instance.gpu
                event_data[3] = _NO_INSTANCE if instance.compute is None else instance.compute

    def set_recovery_action(
        self, device: str, action: int, *, deliver: bool = True, kernel_log: Path | None = None
    ) -> None:
        """The recovery action that is due changes, to NVML's number: the field, its event, and Xid 154."""
        chip = self.chip(device)
        _check(device, "a recovery action", action, len(RECOVERY_ACTIONS))
        if kernel_log is not None:
            write_line(kernel_log, recovery_line(self.pci(device), int(chip.gpu_recovery_action), action))
        chip.gpu_recovery_action = action
        if deliver:
            self.post(device, EVENT_RECOVERY_ACTION, action)
            self.post(device, EVENT_XID, 154)

    def raise_sxid(
        self,
        switch: int,
        sxid: int,
        *,
        kernel_log: Path,
        fatal: bool = False,
        link: int = 0,
        detail: str = "",
    ) -> None:
        """An SXid of an NVSwitch: only a line of the kernel. Raises ``FieldError`` for no such switch."""
        chip = self.chip("gpu0")
        buses = sorted({int(bus) for bus in chip.gpu_nvlink_remote_bus[: chip.gpu_nvlink_count]})
        _check("gpu0", "a switch", switch, len(buses))
        pci = f"0000:{buses[switch]:02x}:00.0"
        write_line(kernel_log, sxid_line(switch, pci, sxid, fatal=fatal, link=link, detail=detail))

    # --- a GPU that does not answer, or is another ---

    def lose(self, device: str) -> None:
        """It falls off the bus: listed still, and every call about it answers GPU_IS_LOST."""
        self.chip(device).ready = 0
        with self._state.locked():
            self._state.wake_waiters()

    def require_reset(self, device: str) -> None:
        """Every call about it answers RESET_REQUIRED."""
        self.answer_always(device, RESET_REQUIRED)

    def answer_always(self, device: str, answer: int) -> None:
        """Every call about it, handles included, answers this; 0 ends it."""
        self.chip(device).gpu_answer = answer
        with self._state.locked():
            self._state.wake_waiters()

    def replace(self, device: str, seed: int) -> None:
        """Another GPU of the product is in the slot."""
        set_gpu_identity(self.chip(device), seed)

    # --- counters and states that belong together ---

    def count_ecc(self, device: str, location: Location, *, corrected: int = 0, uncorrected: int = 0) -> None:
        """So many more ECC errors, volatile and aggregate; those of SRAM in its own status too.

        Raises ``FieldError`` where the product does not count errors of that kind there.
        """
        chip, place = self.chip(device), LOCATIONS.index(location)
        for kind, errors in (("corrected", corrected), ("uncorrected", uncorrected)):
            for span in ("volatile", "aggregate") if errors else ():
                counters = getattr(chip, f"gpu_ecc_{kind}_{span}")
                if counters[place] == unsupported(counters._type_):
                    raise FieldError(f"{device}: it does not count {kind} errors of {location}")
                counters[place] += errors
        if location == "sram":
            for span in ("volatile", "aggregate"):
                _add(chip, f"gpu_sram_corrected_{span}", corrected)
                _add(chip, f"gpu_sram_secded_{span}", uncorrected)
            chip.gpu_sram_buckets[0] += uncorrected

    def remap(self, device: str, *, corrected: int = 0, uncorrected: int = 0, pending: bool = False) -> None:
        """So many more rows are remapped, each of another bank; ``pending``: only once the GPU was reset."""
        chip = self.chip(device)
        _add(chip, "gpu_rows_corrected", corrected)
        _add(chip, "gpu_rows_uncorrected", uncorrected)
        moved = min(corrected + uncorrected, int(chip.gpu_row_banks[0]))
        chip.gpu_row_banks[0] -= moved
        chip.gpu_row_banks[1] += moved
        chip.gpu_rows_pending = int(pending)

    def fail_remap(self, device: str) -> None:
        """A row could not be remapped: a bank has no spare row left."""
        chip = self.chip(device)
        chip.gpu_rows_failed = 1
        chip.gpu_row_banks[0] -= 1
        chip.gpu_row_banks[4] += 1

    def set_link(self, device: str, link: int, *, active: bool) -> None:
        """An NVLink goes down or comes back. Raises ``FieldError`` where the GPU has no such link."""
        chip = self.chip(device)
        if not 0 <= link < chip.gpu_nvlink_count:
            raise FieldError(f"{device}: it has the NVLinks 0 to {chip.gpu_nvlink_count - 1}, not {link}")
        chip.gpu_nvlink_states[link] = int(active)

    def set_fabric(self, device: str, state: int, *, status: int = 0) -> None:
        """Its registration with the fabric: 1 not started, 2 in progress, 3 completed; an NVML code."""
        chip = self.chip(device)
        _check(device, "a state", state, 4)
        chip.gpu_fabric_state, chip.gpu_fabric_status = state, status

    def partition(self, device: str, slices: Sequence[int]) -> None:
        """MIG is on, with one device of so many slices each; an empty list switches MIG off."""
        if sum(slices) > 7 or any(size not in (1, 2, 3, 4, 7) for size in slices):
            raise FieldError(
                f"{device}: MIG devices of 1, 2, 3, 4 or 7 slices, 7 in all, are right, not {slices}"
            )
        chip = self.chip(device)
        chip.gpu_mig_mode = chip.gpu_mig_pending_mode = int(bool(slices))
        chip.gpu_mig_count = len(slices)
        for place, size in enumerate(slices):
            chip.gpu_mig_slices[place], chip.gpu_mig_memory_bytes[place] = size, size * _SLICE_BYTES

    def obstacles(self, device: str) -> list[int]:
        """What keeps this GPU from being reset: the processes on it, and every client of the library."""
        return sorted(
            {*processes.on(self.chip(device)), *(client.process_id for client in self.driver.clients())}
        )


def _check(device: str, what: str, number: int, end: int) -> None:
    if not 0 <= number < end:
        raise FieldError(f"{device}: {what} from 0 to {end - 1} is right, not {number}")


def _add(chip: Any, field: str, more: int) -> None:
    setattr(chip, field, getattr(chip, field) + more)
