"""Everything that can be made happen to the GPUs of an emulated node.

As on ``EmulatedNode``, every method is done when it returns, and a GPU is named ``gpu<n>``. What works for
every kind of chip (hang, answer, drop, hold, set a field) stays there. It never says what a daemon ought to
make of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from nodeagent.emulator.nvidia.chips import set_gpu_identity, unsupported
from nodeagent.emulator.nvidia.driver import Driver
from nodeagent.emulator.nvidia.kernel_lines import (
    RECOVERY_ACTIONS,
    Instance,
    recovery_line,
    sxid_line,
    write_line,
    xid_line,
)
from nodeagent.emulator.shared import processes
from nodeagent.emulator.shared.fields import FieldError
from nodeagent.emulator.shared.layout import LIMITS
from nodeagent.emulator.shared.state import State

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

    def __init__(self, state: State, library: Path) -> None:
        """``library`` is the double that lies beside the state."""
        self.driver: Final = Driver(state, library)
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
        """An Xid: sent to whoever waits for events, and written to ``kernel_log``, where given.

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
        """Who keeps this GPU from being reset: the processes on it, and every client of the library."""
        return sorted(
            {*processes.on(self.chip(device)), *(client.process_id for client in self.driver.clients())}
        )


def _check(device: str, what: str, number: int, end: int) -> None:
    if not 0 <= number < end:
        raise FieldError(f"{device}: {what} from 0 to {end - 1} is right, not {number}")


def _add(chip: Any, field: str, more: int) -> None:
    setattr(chip, field, getattr(chip, field) + more)
