"""The state file: created, mapped, locked; with the overrides and counts of calls, and the events.

One file in one directory is one node. Every process that maps it sees a change at once: those that have
loaded the libraries, the emulator's server, tests. Writers of codes and events hold the lock of the file.
Waiting libraries are woken by a futex (Linux on x86-64 and 64-bit ARM). No vendor is known here.
"""

import ctypes
import fcntl
import mmap
import os
import platform
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator.layout import LAYOUT, LIMITS

_SYSCALL: Final = {"x86_64": 202, "aarch64": 98}
_WAKE: Final = 1
_ALL: Final = 2**31 - 1
_libc: Final = ctypes.CDLL(None, use_errno=True)


def wake_all(structure: ctypes.Structure, field: str) -> None:
    """Wakes all threads that wait on this 32-bit field. Raises ``KeyError`` on another processor."""
    offset: Any = getattr(type(structure), field).offset
    address = ctypes.addressof(structure) + offset
    _libc.syscall(_SYSCALL[platform.machine()], ctypes.c_void_p(address), _WAKE, _ALL, None, None, 0)


FILE: Final = "node.state"
WHAT: Final[Mapping[str, int]] = {
    "answer": LIMITS["DO_ANSWER"],
    "hang": LIMITS["DO_HANG"],
    "hang-uninterruptibly": LIMITS["DO_HANG_UNINTERRUPTIBLY"],
    "lock": LIMITS["DO_LOCK"],
    "lock-uninterruptibly": LIMITS["DO_LOCK_UNINTERRUPTIBLY"],
    "delay": LIMITS["DO_DELAY"],
    "crash": LIMITS["DO_CRASH"],
    "time-out": LIMITS["DO_TIME_OUT"],
}
"""What can be done to a call, by its name."""
NO_LIE: Final = LIMITS["NO_LIE"]
"""The value of a ``…_lie`` field that answers the truth."""


class EmulatorStateError(RuntimeError):
    """The file is none of this build, or a table in it is full; the text has what to do."""


def _hash(name: str) -> int:
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


class EmulatorState:
    """The mapped file: ctypes structures whose fields are those of ``c/fields.def``.

    Every process sees changes to ``node``, ``chips``, ``standing``, ``fabric``, ``alarms``, ``sel``,
    ``overrides``, ``functions`` and ``events`` at once.
    """

    def __init__(self, path: Path) -> None:
        """Maps an existing file. Raises ``OSError``, and ``StateError`` for a file of another build."""
        size = ctypes.sizeof(LAYOUT.state)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if os.fstat(self._descriptor).st_size != size:
            os.close(self._descriptor)
            raise EmulatorStateError(f"{path}: not made by this build of the emulator; start it again")
        weakref.finalize(self, os.close, self._descriptor)
        self._map = mmap.mmap(self._descriptor, size)
        self._whole: Any = LAYOUT.state.from_buffer(self._map)
        self.node: Any = self._whole.node
        self.chips: Any = self._whole.chips
        self.standing: Any = self._whole.standing
        self.fabric: Any = self._whole.fabric
        self.alarms: Any = self._whole.alarms
        self.sel: Any = self._whole.sel
        self.overrides: Any = self._whole.overrides
        self.functions: Any = self._whole.functions
        self.events: Any = self._whole.events

    @classmethod
    def create(cls, path: Path) -> "EmulatorState":
        """A new file that describes a node without chips, in place of whatever was there."""
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with fresh.open("wb") as file:
            file.truncate(ctypes.sizeof(LAYOUT.state))
        fresh.replace(path)
        made = cls(path)
        made.node.magic = LIMITS["STATE_MAGIC"]
        made.node.state_bytes = ctypes.sizeof(LAYOUT.state)
        made.node.host_namespace = Path("/proc/self/ns/mnt").stat().st_ino
        return made

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock that the libraries take to read and write codes and events."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def post(self, **fields: Any) -> int:
        """Appends an event that subscribers receive; returns its number. The caller holds the lock.

        ``fields`` are those of EVENT in ``fields.def``; serial, time and number are made where not given.
        """
        number = int(self.node.event_head) + 1
        event = self.events[number % LIMITS["EVENTS"]]
        ctypes.memset(ctypes.byref(event), 0, ctypes.sizeof(event))
        self.node.next_serial += 1
        made = {
            "serial": self.node.next_serial,
            "notify_serial": self.node.next_serial,
            "raised_ms": time.time_ns() // 1_000_000,
        }
        for name, value in {**made, **fields, "number": number}.items():
            setattr(event, name, value)
        self.node.event_head = number
        self.wake_waiters()
        return number

    def wake_waiters(self) -> None:
        """Processes that wait for events look again at what there is. The caller holds the lock."""
        self.node.event_signal = (self.node.event_signal + 1) & 0xFFFFFFFF
        wake_all(self.node, "event_signal")

    # --- overrides ---

    def override(
        self,
        what: str,
        function: str = "*",
        chip: int = -1,
        *,
        answer: int = 0,
        skip: int = 0,
        times: int = -1,
        for_s: float = 0,
        delay_ms: int = 0,
        process: int = 0,
    ) -> int:
        """Does ``what`` (a key of ``WHAT``) to calls of a function (``*`` at its end: all that begin so).

        ``chip`` -1 is any chip and calls about none. The first ``skip`` calls go through, then ``times``
        are hit (-1: all). ``for_s`` ends a hang by itself. Returns what to ``release``.
        Raises ``StateError``.
        """
        with self.locked():
            for index in range(LIMITS["OVERRIDES"]):
                if self.overrides[index].what == 0:
                    break
            else:
                raise EmulatorStateError(f"{LIMITS['OVERRIDES']} overrides are set already: release some")
            slot = self.overrides[index]
            ctypes.memset(ctypes.byref(slot), 0, ctypes.sizeof(slot))
            slot.function = function.encode()
            slot.chip, slot.process, slot.answer = chip, process, answer
            slot.skip, slot.remaining, slot.delay_ms = skip, times, delay_ms
            slot.until_ns = time.monotonic_ns() + int(for_s * 1e9) if for_s else 0
            slot.what = WHAT[what]
            self.node.override_count = max(self.node.override_count, index + 1)
            self._signal_override()
            return index

    def release(self, number: int | None = None) -> None:
        """Ends one override, or all: what hangs goes on."""
        with self.locked():
            for index in range(LIMITS["OVERRIDES"]) if number is None else (number,):
                self.overrides[index].what = 0
            self._signal_override()

    def _signal_override(self) -> None:
        self.node.override_signal = (self.node.override_signal + 1) & 0xFFFFFFFF
        wake_all(self.node, "override_signal")

    # --- functions ---

    def function(self, name: str) -> Any:
        """The slot of an exported function, made if there is none yet. Raises ``StateError`` when full."""
        wanted = name.encode()
        with self.locked():
            for step in range(LIMITS["FUNCTIONS"]):
                slot = self.functions[(_hash(name) + step) % LIMITS["FUNCTIONS"]]
                if not slot.used:
                    slot.name = wanted
                    slot.used = 1
                if slot.name == wanted:
                    return slot
        raise EmulatorStateError(f"the table of functions is full: {LIMITS['FUNCTIONS']} names")

    def calls(self, name: str, chip: int | None = None) -> int:
        """How often a function was called: in all, or about one chip (-1: about none)."""
        counts = self.function(name).calls
        return int(sum(counts) if chip is None else counts[chip + 1])

    def all_calls(self) -> dict[str, int]:
        """Function -> calls so far, of those that were called."""
        counted = {slot.name.decode(): sum(slot.calls) for slot in self.functions if slot.used}
        return {name: count for name, count in sorted(counted.items()) if count}
