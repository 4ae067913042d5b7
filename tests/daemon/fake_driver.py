"""A driver that does what files in its control folder say: the worst that real ones have done.

``config``: ``control`` (the folder) and ``devices`` (their names, space separated). In the folder:

    hang-DEVICE      a FIFO: polls of the device block in opening it, interruptibly
    stuck-DEVICE     a FIFO: polls of the device block in the kernel, in uninterruptible sleep
    fail-DEVICE      polls of the device come back with the error in the file
    lost-DEVICE      the device is not listed but reported missing, for the reason in the file
    hang-open        a FIFO: opening the library blocks
    absent, broken   opening the library fails; the devices named in the file are missing by that
    outdated         the library must be opened anew, for the reason in the file
    renew, more      another process would see more, or may: the source asks for one at each of its polls
    unseen-DEVICE    a process that begins while it is there does not list the device
    opened           the pids of those that have opened the library
    crash-DEVICE     a poll of the device reads from address 0
    deaf             SIGTERM is ignored
    held-DEVICE      the pids in the file hold the device
    mutter           every poll prints many lines on both standard streams
    burst            the next poll makes four threads of the library report as many codes each as the file
                     says, many times in one go; all of them are active from then on
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from nodeagent.core.model import Assertion, Kind
from nodeagent.drivers.api import CallFailed, Driver, Emit, Population, Reading, Unavailable
from nodeagent.wire import Active, Batch, Configure, Device, DeviceUser, Missing, Pattern, Renew, Signal

MUTTERED_LINES = 2000
BURSTING_THREADS = 4
BURST_TIMES = 20


def create(configure: Configure, emit: Emit) -> Driver:
    return FakeDriver(Path(str(configure.config["control"])), str(configure.config["devices"]).split(), emit)


class FakeDriver:
    def __init__(self, control: Path, devices: Sequence[str], emit: Emit) -> None:
        self._control = control
        self._devices = devices
        self._emit = emit
        self._burst: list[str] = []
        self._unseen: list[str] = []
        self._libc = ctypes.CDLL(None, use_errno=True)

    def open(self) -> None:
        with (self._control / "opened").open("a") as opened:
            opened.write(f"{os.getpid()}\n")
        self._unseen = [name for name in self._devices if (self._control / f"unseen-{name}").exists()]
        self._hang("hang-open")
        if (self._control / "deaf").exists():
            ignore = ctypes.c_void_p(1)
            self._libc.signal.restype = ctypes.c_void_p
            self._libc.signal(ctypes.c_int(signal.SIGTERM), ignore)
        if (slots := self._setting("absent")) is not None:
            raise Unavailable("libfake.so: no such library", absent=True, missing=_missing(slots))
        if (slots := self._setting("broken")) is not None:
            raise Unavailable("libfake.so: wrong version", errno=-8, missing=_missing(slots))

    def _setting(self, name: str) -> str | None:
        """What is in the file, if it is there; it may go at any moment."""
        with contextlib.suppress(FileNotFoundError):
            return (self._control / name).read_text()
        return None

    def devices(self) -> Population:
        if (outdated := self._setting("outdated")) is not None:
            raise Unavailable(outdated)
        for name in ("renew", "more"):
            if (reason := self._setting(name)) is not None:
                self._emit(Renew(reason=reason, lists="more" if name == "more" else "all"))
        lost = {name: self._setting(f"lost-{name}") for name in self._devices}
        return Population(
            devices=[
                Device(device=name, kind=Kind.CHIP, vendor="fake", identity=f"id-{name}")
                for name, reason in lost.items()
                if reason is None and name not in self._unseen
            ],
            missing=[
                Missing(device=name, reason=reason)
                for name, reason in sorted(lost.items())
                if reason is not None
            ],
        )

    def poll(self, device: str) -> Reading:
        if (self._control / f"crash-{device}").exists():
            ctypes.string_at(0)
        if (self._control / "mutter").exists():
            self._mutter()
        self._hang(f"hang-{device}")
        self._stick(f"stuck-{device}")
        if (failure := self._setting(f"fail-{device}")) is not None:
            raise CallFailed(failure, errno=16)
        self._report_burst(device)
        active = [Active(code=code) for code in ("CAFE", *self._burst)]
        return Reading(
            active=active, readings={"temperature_celsius": 41.5}, users=self._holders(f"held-{device}")
        )

    def reload(self, patterns: Sequence[Pattern]) -> None:
        (self._control / "reloaded").write_text(" ".join(pattern.id for pattern in patterns))

    def close(self) -> None:
        (self._control / "closed").touch()

    def _hang(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.close(os.open(self._control / name, os.O_RDONLY))

    def _stick(self, name: str) -> None:
        """A thread whose vfork child has not yet executed is in D state; this child first opens a FIFO."""
        fifo = self._control / name
        if not fifo.exists():
            return
        actions = ctypes.create_string_buffer(256)
        self._libc.posix_spawn_file_actions_init(actions)
        self._libc.posix_spawn_file_actions_addopen(actions, 0, bytes(fifo), os.O_RDONLY, 0)
        arguments = (ctypes.c_char_p * 2)(b"true", None)
        environment = (ctypes.c_char_p * 1)(None)
        pid = ctypes.c_int()
        # It fails where the FIFO has gone since.
        if not self._libc.posix_spawn(ctypes.byref(pid), b"/bin/true", actions, None, arguments, environment):
            os.waitpid(pid.value, 0)

    def _holders(self, name: str) -> list[DeviceUser] | None:
        if (pids := self._setting(name)) is None:
            return None
        return [DeviceUser(pid=int(pid), start_time=1, command="python") for pid in pids.split()]

    def _report_burst(self, device: str) -> None:
        try:
            taken = (self._control / "burst").rename(self._control / "bursting")
        except FileNotFoundError:
            return
        each = int(taken.read_text())
        codes = [[f"BURST_{thread}_{number}" for number in range(each)] for thread in range(BURSTING_THREADS)]
        threads = [threading.Thread(target=self._call_back, args=(device, listed)) for listed in codes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._burst = [code for listed in codes for code in listed]

    def _call_back(self, device: str, codes: Sequence[str]) -> None:
        for code in [*codes] * BURST_TIMES:
            signal = Signal(device=device, code=code, assertion=Assertion.OCCUR)
            self._emit.enqueue(Batch(signals=(signal,)))

    def _mutter(self) -> None:
        for number in range(MUTTERED_LINES):
            print("a library's idle talk", number)
            print("and its complaints", number, file=sys.stderr)


def _missing(slots: str) -> list[Missing]:
    return [Missing(device=slot, reason="PCI shows it") for slot in slots.split()]
