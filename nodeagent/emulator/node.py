"""One emulated node: its chips by the daemon's names, and all that can happen to them.

It is used by tests in the same process and by the emulator's server. A method is done when it returns; a hang
lasts until ``release``. What a daemon should make of it is not known here.
"""

import shutil
import signal
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator import build, processes
from nodeagent.emulator.bmc import Controller
from nodeagent.emulator.descriptions import describe, libraries_for, write_pci_tree
from nodeagent.emulator.gpus import Gpus
from nodeagent.emulator.layout import LIMITS, set_field, take_away
from nodeagent.emulator.npus import (
    OCCUR,
    RECOVER,
    NpuFault,
    add_active_fault,
    matching,
    remove_active_fault,
    send_event,
    set_die,
    standing,
)
from nodeagent.emulator.state import FILE, EmulatorState
from nodeagent.emulator.switches import Switches


class UnknownDevice(LookupError):
    """No chip of that name; the text lists those that there are."""


class EmulatedNode:
    """``with EmulatedNode.create(directory, "8x910B") as node: …`` — the libraries lie in ``directory``."""

    def __init__(self, directory: Path) -> None:
        """Joins the node of a directory. Raises ``OSError`` and ``StateError`` where there is none."""
        self.directory = directory
        self.state = EmulatorState(directory / FILE)
        self.gpus: Final = Gpus(self.state, self.nvml)
        self.switches: Final = Switches(self.state)
        self.bmc: Final = Controller(self.state)

    @classmethod
    def create(cls, directory: Path, description: str) -> "EmulatedNode":
        """A new node; builds the libraries if need be. Raises ``DescriptionError``, ``BuildFailed``."""
        libraries = build.build(names=libraries_for(description))
        directory.mkdir(parents=True, exist_ok=True)
        for stale in directory.glob("lib*.so*"):
            stale.unlink()
        for library in libraries:
            # A library that is mapped somewhere must not change under it: a new file, not new bytes.
            fresh = directory / f".{library.name}"
            shutil.copyfile(library, fresh)
            fresh.replace(directory / library.name)
        state = EmulatorState.create(directory / FILE)
        describe(state, description)
        write_pci_tree(state, directory / "sys")
        return cls(directory)

    def __enter__(self) -> "EmulatedNode":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def dcmi(self) -> Path:
        """The double of ``libdcmi.so``."""
        return self.directory / "libdcmi.so"

    @property
    def lingqu(self) -> Path:
        """The double of ``liblingqu-dcmi.so``."""
        return self.directory / "liblingqu-dcmi.so"

    @property
    def ipmi(self) -> Path:
        """The double of the kernel's ``/dev/ipmi0``: what a driver takes the C library's calls from."""
        return self.directory / "libbmc.so"

    @property
    def nvml(self) -> Path:
        """The double of ``libnvidia-ml.so.1``."""
        return self.directory / "libnvidia-ml.so.1"

    @property
    def sysfs(self) -> Path:
        """A tree such as ``/sys`` whose PCI lists every chip that was described."""
        return self.directory / "sys"

    def without(self, *functions: str) -> None:
        """Takes functions out of ``libdcmi.so``, as an older one lacks them; ``*`` ends a beginning of names.

        Only for what loads the library afterwards. Raises ``symbols.NoSuchFunction``.
        """
        wanted = {name for function in functions for name in matching(function)}
        take_away(self.dcmi, sorted(wanted))

    # --- chips ---

    def names(self) -> list[str]:
        """The devices: ``npu<physical id>``, ``gpu<index>``."""
        names: list[str] = []
        for index in range(self.state.node.chip_count):
            chip = self.state.chips[index]
            if chip.kind == LIMITS["KIND_NPU"]:
                names.append(f"npu{chip.physical_id}")
            else:
                names.append(f"gpu{sum(name.startswith('gpu') for name in names)}")
        return names

    def index(self, device: str) -> int:
        """The place of a device in the state file. Raises ``UnknownDevice``."""
        names = self.names()
        if device not in names:
            raise UnknownDevice(f"{device}: this node has {', '.join(names)}")
        return names.index(device)

    def chip(self, device: str) -> Any:
        """The fields of a device, to be read and written: those of CHIP in ``c/fields.def``."""
        return self.state.chips[self.index(device)]

    # --- faults of an NPU ---

    def raise_code(
        self,
        device: str,
        code: int,
        *,
        severity: int = 2,
        name: str = "",
        deliver: bool = True,
        stand: bool = True,
        events: int = 1,
        part: int = 0,
    ) -> None:
        """A fault begins: it is active, and ``events`` occur events are sent.

        ``severity`` is the library's: 0 suggestion, 1 minor, 2 major, 3 critical. ``deliver=False``: it
        is active, but no event is sent (a lost callback). ``stand=False``: only sent. ``part``: of the chip.
        """
        fault = NpuFault(code, severity, name, part)
        index = self.index(device)
        if stand:
            add_active_fault(self.state, index, fault)
        for _ in range(events if deliver else 0):
            send_event(self.state, index, fault, OCCUR)

    def clear_code(self, device: str, code: int, *, deliver: bool = True, part: int = 0) -> None:
        """A fault ends. ``deliver=False``: no event is sent (a lost recover)."""
        index = self.index(device)
        fault = remove_active_fault(self.state, index, code, part)
        if deliver:
            send_event(self.state, index, fault, RECOVER)

    def clear_codes(self, device: str, *, deliver: bool = True) -> None:
        """Every fault of a device ends."""
        for fault in standing(self.state, self.index(device)):
            self.clear_code(device, fault.code, deliver=deliver, part=fault.part)

    def codes(self, device: str) -> list[int]:
        """The codes that are active."""
        return [fault.code for fault in standing(self.state, self.index(device))]

    def send_event(
        self,
        device: str,
        code: int,
        assertion: int,
        *,
        severity: int = 2,
        name: str = "",
        device_id: int | None = None,
    ) -> None:
        """Only an event, whatever is active: a one-off (2), a recover before its occur, event id 0, nonsense.

        ``device_id``: the event names another chip than its own.
        """
        send_event(self.state, self.index(device), NpuFault(code, severity, name), assertion, device_id)

    # --- calls ---

    def hang(
        self,
        device: str | None = None,
        function: str = "*",
        *,
        uninterruptibly: bool = False,
        lock: bool = False,
        for_s: float = 0,
        times: int = -1,
        skip: int = 0,
        process: int = 0,
    ) -> int:
        """Calls about a device (``None``: any) hang until released, or for so long; returns what to release.

        ``uninterruptibly``: their threads are in state D. ``lock``: the first one holds the driver's lock,
        so that from then on every call of every process into the same library hangs.
        """
        what = ("lock" if lock else "hang") + ("-uninterruptibly" if uninterruptibly else "")
        return self.override(what, device, function, for_s=for_s, times=times, skip=skip, process=process)

    def answer(
        self, answer: int, device: str | None = None, function: str = "*", *, times: int = -1, skip: int = 0
    ) -> int:
        """Calls answer this error instead of what they would."""
        return self.override("answer", device, function, answer=answer, times=times, skip=skip)

    def delay(self, delay_ms: int, device: str | None = None, function: str = "*", *, times: int = -1) -> int:
        """Calls take so much longer."""
        return self.override("delay", device, function, delay_ms=delay_ms, times=times)

    def time_out(
        self,
        device: str,
        function: str = "*",
        *,
        delay_ms: int,
        answer: int,
        times: int = -1,
    ) -> int:
        """Calls take so long, with every other call into the same library waiting, and answer this error."""
        return self.override("time-out", device, function, delay_ms=delay_ms, answer=answer, times=times)

    def crash(
        self,
        device: str | None = None,
        function: str = "*",
        *,
        signal_number: int = signal.SIGSEGV,
        times: int = 1,
    ) -> int:
        """The next call ends its process with this signal."""
        return self.override("crash", device, function, answer=signal_number, times=times)

    def override(self, what: str, device: str | None, function: str, **how: Any) -> int:
        """Does one of ``state.WHAT`` to calls; ``how`` is as in ``State.override``."""
        return self.state.override(what, function, -1 if device is None else self.index(device), **how)

    def release(self, number: int | None = None) -> None:
        """Ends one of what was done to calls, or all of it."""
        self.state.release(number)

    def calls(self, function: str, device: str | None = None) -> int:
        """How often a function was called, in all or about one device."""
        return self.state.calls(function, None if device is None else self.index(device))

    def refused(self) -> int:
        """How many calls about chips were answered by an error: the vendor's libdcmi logs each."""
        return sum(slot.refused for slot in self.state.functions if slot.used)

    # --- what there is ---

    def set(self, device: str, field: str, value: Any, place: int | None = None) -> None:
        """Sets a field of CHIP in ``c/fields.def``, of an array one place. Raises ``FieldError``."""
        set_field(self.chip(device), field, value, place)

    def set_node(self, field: str, value: Any, place: int | None = None) -> None:
        """Sets a field of NODE in ``c/fields.def``. Raises ``FieldError``."""
        set_field(self.state.node, field, value, place)

    def drop(self, device: str) -> None:
        """The chip falls off its bus: still listed, every call about it answers that it is not ready."""
        self.chip(device).ready = 0

    def return_(self, device: str) -> None:
        """A chip that dropped, or was taken out, is back."""
        self.chip(device).ready = self.chip(device).present = 1

    def take_out(self, device: str) -> None:
        """The driver removes the chip; its name stays taken. Processes that have found an NPU list it still,
        and learn by its health that it is not there.
        """
        self.chip(device).present = 0

    def replace_die(self, device: str, seed: int) -> None:
        """Another die (and serial) is in the slot."""
        set_die(self.chip(device), seed)
        self.chip(device).serial = f"2102316{seed:09d}".encode()

    def renumber(self, order: list[int]) -> None:
        """Logic ids are given out again, in this order of the chips; names, cards and dies stay."""
        for logic_id, index in enumerate(order):
            self.state.chips[index].logic_id = logic_id

    def hold(
        self, device: str, process_id: int, memory_bytes: int = 1 << 30, *, is_real: bool = False
    ) -> None:
        """A process is on the chip: a real one until it ends, any other until ``let_go``."""
        with self.state.locked():
            processes.add(self.chip(device), process_id, memory_bytes, is_real=is_real)

    def end_process(self, device: str, process_id: int) -> None:
        """A process on the chip ends in the middle of the next list: listed once more, then gone."""
        chip = self.chip(device)
        place = list(chip.process_ids[: chip.process_count]).index(process_id)
        chip.process_memory_bytes[place] = LIMITS["PROCESS_ENDED"]

    def let_go(self, device: str) -> None:
        """No process is on the chip any more."""
        self.chip(device).process_count = 0

    def set_supported(self, function: str, supported: bool) -> None:
        """Whether this product has a call; what it lacks answers that it is not supported."""
        self.state.function(function).unsupported = int(not supported)
