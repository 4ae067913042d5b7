"""The record of resets: one file for each, written by the processes that did them.

It lies next to the store and outlives it: if the store is lost, the resets still count. The daemon may read
it. Time is CLOCK_BOOTTIME within a boot and the wall clock across boots, and never ahead of now. A file that
cannot be read counts as a reset of unknown devices at the time when it was written.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from nodeagent.reset_unit.exchange import files
from nodeagent.reset_unit.exchange.requests import RequestedDevice, plain

RESETS: Final = "resets"
LOCK: Final = "lock"
KEPT_NS: Final = 604_800 * 10**9
"""As long as the longest limit_window."""

MAX_FILES: Final = 8192
MAX_FILE_BYTES: Final = 256 << 10
_ENDING: Final = ".json"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class RecordedTime(Struct, frozen=True, kw_only=True):
    """A time by both clocks; ``boot_id`` as the kernel writes it, "" where the boot is not known."""

    boot_id: str
    boottime_ns: int
    wall_ns: int


class ResetEntry(Struct, frozen=True, kw_only=True):
    """A file. ``ended`` None: it is in progress, or was interrupted."""

    action: str
    attempt: int
    vendor: str
    devices: tuple[RequestedDevice, ...]
    begun: RecordedTime
    ended: RecordedTime | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastReset:
    """``at``: its end, else its beginning, ``ago_ns`` before now. ``devices`` (): unknown."""

    action: str
    attempt: int
    vendor: str
    devices: tuple[RequestedDevice, ...]
    at: RecordedTime
    ago_ns: int


def now() -> RecordedTime:
    """Raises ``OSError``."""
    return RecordedTime(
        boot_id=_BOOT_ID.read_text().strip(),
        boottime_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        wall_ns=time.time_ns(),
    )


def ago_ns(at: RecordedTime, present: RecordedTime) -> int:
    """How long before ``present`` it was, never below 0. What was in an earlier boot was at least before
    this one.
    """
    if at.boot_id == present.boot_id:
        return max(0, present.boottime_ns - at.boottime_ns)
    this_boot_ns = present.boottime_ns if at.boot_id else 0
    return max(present.wall_ns - at.wall_ns, this_boot_ns)


def resets_of_late(
    folder: Path, within_ns: int = KEPT_NS, present: RecordedTime | None = None
) -> tuple[PastReset, ...]:
    """The resets in the record in ``folder``, the oldest first; () where there is none yet.

    A device that could not be read when it was reset has the identity "", and is known by its place.
    Raises ``OSError`` and ``ValueError`` where the folder cannot be read or trusted.
    """
    present = present or now()
    found = (_past(entry, present) for _, entry in _entries(folder))
    return tuple(sorted((each for each in found if each.ago_ns <= within_ns), key=lambda each: -each.ago_ns))


class ResetRecord:
    """The record for the one process that writes it. The methods raise ``OSError`` and ``ValueError``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        files.make(self.folder)
        files.make(self.folder / RESETS)

    @contextlib.contextmanager
    def counting(self, wait_s: float) -> Iterator[None]:
        """No other process counts at the same time. Raises ``files.Locked``."""
        with files.locked(self.folder, LOCK, wait_s):
            yield

    @contextlib.contextmanager
    def group_locked(self, group: str, wait_s: float) -> Iterator[None]:
        """One process for each group of devices. Raises ``files.Locked``."""
        with files.locked(self.folder, f"{plain(group)}.group", wait_s):
            yield

    def put(self, entry: ResetEntry) -> None:
        """It, under its beginning: a second time it takes the place of the first."""
        with files.opened(self.folder / RESETS) as folder:
            files.write(folder, _file_of(entry), msgspec.json.encode(entry))

    def drop(self, entry: ResetEntry) -> None:
        """Drop the attempt: nothing was done."""
        (self.folder / RESETS / _file_of(entry)).unlink(missing_ok=True)

    def forget_old(self, present: RecordedTime) -> None:
        for name, entry in _entries(self.folder):
            if _past(entry, present).ago_ns > KEPT_NS:
                (self.folder / RESETS / name).unlink(missing_ok=True)


def _file_of(entry: ResetEntry) -> str:
    return f"{entry.begun.boot_id}-{entry.begun.boottime_ns}{_ENDING}"


def _past(entry: ResetEntry, present: RecordedTime) -> PastReset:
    at = entry.ended or entry.begun
    return PastReset(
        action=entry.action,
        attempt=entry.attempt,
        vendor=entry.vendor,
        devices=entry.devices,
        at=at,
        ago_ns=ago_ns(at, present),
    )


def _entries(folder: Path) -> Iterator[tuple[str, ResetEntry]]:
    """File by file; a file that has no name of an entry is not this program's."""
    try:
        with files.opened(folder / RESETS) as descriptor:
            for name in _names(descriptor):
                entry = _entry(descriptor, name)
                if entry is not None:
                    yield name, entry
    except FileNotFoundError:
        return


def _names(descriptor: int) -> Iterable[str]:
    names = [name for name in os.listdir(descriptor) if name.endswith(_ENDING) and not name.startswith(".")]
    if len(names) > MAX_FILES:
        raise ValueError(f"the record of resets has {len(names)} files; at most {MAX_FILES} are right")
    return sorted(names)


def _entry(descriptor: int, name: str) -> ResetEntry | None:
    """None where it went meanwhile."""
    try:
        return msgspec.json.decode(files.read(descriptor, name, MAX_FILE_BYTES), type=ResetEntry)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return _damaged(descriptor, name)


def _damaged(descriptor: int, name: str) -> ResetEntry | None:
    try:
        written_ns = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return None
    at = RecordedTime(boot_id="", boottime_ns=0, wall_ns=written_ns)
    return ResetEntry(action="", attempt=0, vendor="", devices=(), begun=at)
