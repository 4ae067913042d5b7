"""The files between the daemon and a reset, in one folder, by which either may die and the other go on.

    NAME.request   the daemon wants it; whoever renames it to NAME.begun does it, and nobody else ever
    NAME.lock      flocked by the process that does it, for as long as it lives
    NAME.off       the daemon has called it off since, and why; heeded until the vendor is asked
    NAME.result    how it went; written by rename
    GROUP.group    flocked as well: one process for each group of devices

A name stands for one attempt of one action. Here the files are read and written, and nothing else is done.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final, Literal

import msgspec
from msgspec import Struct

from nodeagent.core.model import ActionState

MAX_FILE_BYTES: Final = 4 << 20
_LOCK_POLL_S: Final = 0.1
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:")
_MAX_NAME: Final = 200


class Device(Struct, frozen=True, kw_only=True):
    """As ``drivers.resetting.Member``."""

    name: str
    identity: str
    attributes: Mapping[str, str] = {}


class Process(Struct, frozen=True, kw_only=True):
    """As ``core.model.Holder``: ``start_time`` tells a pid that was used again."""

    pid: int
    start_time: int
    command: str


class Request(Struct, frozen=True, kw_only=True):
    """A reset, with all that is needed to do it. Times in seconds, ``deadline_ns`` on CLOCK_BOOTTIME.

    ``ended_first`` are processes that get SIGTERM, and ``grace_s`` later SIGKILL.

    ``readings``, ``events`` and ``kernel_log`` (a path) are for the evidence, which goes to ``evidence_dir``.
    """

    action: str
    attempt: int
    vendor: str
    group: str
    devices: tuple[Device, ...]
    reasons: tuple[str, ...]
    deadline_ns: int
    start_limit_s: float
    library: str
    procfs: str
    before: tuple[tuple[str, ...], ...]
    after: tuple[tuple[str, ...], ...]
    hook_timeout_s: float
    do_not_touch: str
    kernel_command_line: str
    evidence_dir: str
    kernel_log: str
    ended_first: tuple[Process, ...] = ()
    grace_s: float = 0.0
    readings: Mapping[str, Mapping[str, float]] = {}
    events: tuple[str, ...] = ()


class Step(Struct, frozen=True, kw_only=True):
    """What was begun, and how long after the process itself."""

    what: str
    after_s: float


class Result(Struct, frozen=True, kw_only=True):
    """How an attempt went."""

    action: str
    attempt: int
    state: Literal["done", "failed", "timed_out", "refused"]
    reason: str
    steps: tuple[Step, ...] = ()

    def told(self) -> str:
        """In one line, with the times."""
        steps = "; ".join(f"{step.what} at {step.after_s:.1f} s" for step in self.steps)
        return f"{self.reason} ({steps})" if steps else self.reason

    @property
    def action_state(self) -> ActionState:
        return ActionState(self.state)


class Locked(Exception):
    """Another process holds the lock."""


def name_of(action: str, attempt: int) -> str:
    """A file name, and an instance of a unit: no "/", no blank, nothing that either of them reads."""
    return _plain(f"{action}.{attempt}")


def _plain(text: str) -> str:
    quoted = "".join(c if c in _PLAIN else "".join(f"_{byte:02x}" for byte in c.encode()) for c in text)
    if len(quoted) > _MAX_NAME or quoted.startswith("."):
        raise ValueError(f"{text!r} cannot be the name of a file")
    return quoted


class Folder:
    """``path`` is made where it is missing, for its owner alone: what lies there is done as root."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Raises ``OSError``."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def ask(self, request: Request) -> str:
        """Leave a request; its name. Raises ``OSError`` and ``ValueError``."""
        name = name_of(request.action, request.attempt)
        self._write(f"{name}.request", msgspec.json.encode(request))
        return name

    def begin(self, name: str) -> Request | None:
        """Take the request, under the lock of that name; None where there is none (any more).

        Raises ``ValueError`` for a request that makes no sense.
        """
        begun = self.path / f"{name}.begun"
        try:
            (self.path / f"{name}.request").rename(begun)
        except FileNotFoundError:
            return None
        return msgspec.json.decode(_read(begun), type=Request)

    def withdraw(self, name: str) -> bool:
        """Take a request back that nobody has begun, under its lock. False: somebody has."""
        try:
            (self.path / f"{name}.request").unlink()
        except FileNotFoundError:
            return not (self.path / f"{name}.begun").exists()
        return True

    def is_asked(self, name: str) -> bool:
        """Whether a request waits that nobody has begun."""
        return (self.path / f"{name}.request").exists()

    def call_off(self, name: str, why: str) -> None:
        """Raises ``OSError``."""
        self._write(f"{name}.off", why.encode())

    def called_off(self, name: str) -> str:
        """Why, "" where it is not. Raises ``OSError`` and ``ValueError``."""
        try:
            return _read(self.path / f"{name}.off").decode()
        except FileNotFoundError:
            return ""

    def answer(self, name: str, result: Result) -> None:
        """Raises ``OSError``."""
        self._write(f"{name}.result", msgspec.json.encode(result))

    def result(self, name: str) -> Result | None:
        """None where there is none. Raises ``ValueError`` where it cannot be read."""
        try:
            return msgspec.json.decode(_read(self.path / f"{name}.result"), type=Result)
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def locked(self, name: str, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the lock of an attempt. Raises ``Locked``, ``OSError``."""
        with self._flocked(f"{name}.lock", wait_s):
            yield

    @contextlib.contextmanager
    def group_locked(self, group: str, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the lock of a group of devices. Raises ``Locked``, ``OSError``."""
        with self._flocked(f"{_plain(group)}.group", wait_s):
            yield

    def is_locked(self, name: str) -> bool:
        """Whether the process of an attempt lives."""
        try:
            with self.locked(name):
                return False
        except Locked:
            return True

    def forget(self, name: str) -> None:
        """Remove what an attempt left. One whose process lives keeps its lock."""
        suffixes = ("request", "begun", "off", "result", "log", *(() if self.is_locked(name) else ("lock",)))
        for suffix in suffixes:
            (self.path / f"{name}.{suffix}").unlink(missing_ok=True)

    def names(self) -> list[str]:
        """All attempts of which there is a file."""
        known = (".request", ".begun", ".off", ".result", ".lock", ".log")
        try:
            return sorted({path.stem for path in self.path.iterdir() if path.suffix in known})
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def _flocked(self, file: str, wait_s: float) -> Iterator[None]:
        until_s = time.monotonic() + wait_s
        with (self.path / file).open("a") as lock:
            while not _taken(lock):
                if time.monotonic() >= until_s:
                    raise Locked(file)
                time.sleep(_LOCK_POLL_S)
            yield

    def _write(self, file: str, content: bytes) -> None:
        if len(content) > MAX_FILE_BYTES:
            raise ValueError(f"{file} would have {len(content)} bytes; at most {MAX_FILE_BYTES} are right")
        fresh = self.path / f".{file}"
        with fresh.open("wb") as written:
            written.write(content)
            written.flush()
            os.fsync(written.fileno())
        fresh.replace(self.path / file)


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: Path) -> bytes:
    """Raises ``ValueError`` for a file that is too long."""
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"{path} has more than {MAX_FILE_BYTES} bytes")
    return content
