"""Requests and results of resets, and the folder in which the daemon and the reset unit exchange them.

The daemon has few rights and may be compromised; the unit acts as root. So a request only names devices and
reasons. Everything that decides what is done to them is read elsewhere (``plan``). Unknown fields are
refused.

    NAME.request   the daemon asks; the process that renames it to NAME.begun does it, and no other
    NAME.lock      locked (flock) by the process that does it, for as long as it lives
    NAME.off       the daemon has cancelled it, and why; obeyed until the vendor's reset begins
    NAME.result    how it went; written by rename

A name is one attempt of one action. Either process may die, and the other goes on. The daemon may write in
the folder, so nothing in it decides what a reset may do; see ``record``.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from nodeagent.core.model import ActionState
from nodeagent.reset_unit.exchange import files
from nodeagent.reset_unit.exchange.files import Locked

MAX_BYTES: Final = 4 << 20
"""The size of a request or a result."""

MAX_REASON: Final = 1000

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:")
_MAX_NAME: Final = 200

# "\Z", for "$" would let a newline pass at the end.
ActionId = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{1,128}/reset#[0-9]{1,10}\Z")]
Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{1,64}\Z")]
Identity = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{0,128}\Z")]
Address = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])?\Z")]
Code = Annotated[str, Meta(pattern=r"\A[ -~]{1,128}\Z")]


class RequestedDevice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chip: its name, its own id and its PCI address, "" where they were never read."""

    name: Name
    identity: Identity = ""
    pci: Address = ""


class JobProcess(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``start_time`` in clock ticks since boot distinguishes a pid that was used again."""

    pid: Annotated[int, Meta(ge=2, le=2**31)]
    start_time: Annotated[int, Meta(ge=1, le=2**62)]


class ResetRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reset of ``devices``, the one that asked first. ``deadline_ns`` is on CLOCK_BOOTTIME.

    ``once``: an operator has ordered it, where the configuration has none done by itself. ``ended_first`` are
    processes of the job that is to be ended for it. ``readings`` and ``events`` (each as JSON) are for the
    evidence.
    """

    action: ActionId
    attempt: Annotated[int, Meta(ge=1, le=100)]
    vendor: Name
    devices: Annotated[tuple[RequestedDevice, ...], Meta(min_length=1, max_length=256)]
    reasons: Annotated[tuple[Code, ...], Meta(max_length=256)] = ()
    once: bool = False
    deadline_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    ended_first: Annotated[tuple[JobProcess, ...], Meta(max_length=4096)] = ()
    readings: Mapping[str, Mapping[str, float]] = {}
    events: tuple[str, ...] = ()


class ResetStep(Struct, frozen=True, kw_only=True):
    """What was begun, and how long after the process itself."""

    what: str
    after_s: float


class ResetResult(Struct, frozen=True, kw_only=True):
    """How an attempt went."""

    state: Literal["done", "failed", "timed_out", "refused"]
    reason: str
    steps: tuple[ResetStep, ...] = ()

    def summary(self) -> str:
        """The result in one line, with the times."""
        steps = "; ".join(f"{step.what} at {step.after_s:.1f} s" for step in self.steps)
        return f"{self.reason} ({steps})" if steps else self.reason

    @property
    def action_state(self) -> ActionState:
        return ActionState(self.state)


def name_of(action: str, attempt: int) -> str:
    """The name of the files of an attempt: no "/" is in it, nor what else a path reads. Raises
    ``ValueError``.
    """
    return plain(f"{action}.{attempt}")


def plain(text: str) -> str:
    """As part of a file's name. Raises ``ValueError``."""
    quoted = "".join(c if c in _PLAIN else "".join(f"_{byte:02x}" for byte in c.encode()) for c in text)
    if not is_plain(quoted):
        raise ValueError(f"{text!r} cannot be the name of a file")
    return quoted


def is_plain(name: str) -> bool:
    """Whether it can be part of a path as it is."""
    return 0 < len(name) <= _MAX_NAME and not name.startswith(".") and set(name) <= _PLAIN | {"_"}


def printable(text: str) -> str:
    """Safe for a hook, the journal and the daemon, also if the text is from a vendor's tool or a file."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:MAX_REASON]


def decoded(content: bytes, name: str) -> ResetRequest:
    """The request in a file of that name. Raises ``ValueError``."""
    request = msgspec.json.decode(content, type=ResetRequest)
    if name_of(request.action, request.attempt) != name:
        raise ValueError(f"it is for {request.action}, attempt {request.attempt}, which has another name")
    return request


_SUFFIXES: Final = ("request", "begun", "off", "result", "log", "lock")


class RequestFolder:
    """``path`` is made where it is missing, for its owner alone. Each method raises ``OSError`` and
    ``ValueError`` where a file cannot be had, or is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        files.make(self.path)

    def ask(self, request: ResetRequest) -> str:
        """Leave a request; its name."""
        name = name_of(request.action, request.attempt)
        self._write(f"{name}.request", msgspec.json.encode(request))
        return name

    def begin(self, name: str) -> ResetRequest | None:
        """Take the request, under the lock of that name; None where there is none (any more)."""
        try:
            with files.opened(self.path) as folder:
                files.rename(folder, f"{name}.request", f"{name}.begun")
        except FileNotFoundError:
            return None
        return decoded(self._read(f"{name}.begun"), name)

    def withdraw(self, name: str) -> bool:
        """Withdraw a request that has not begun, under its lock. False if it has begun."""
        try:
            (self.path / f"{name}.request").unlink()
        except FileNotFoundError:
            return not (self.path / f"{name}.begun").exists()
        return True

    def is_asked(self, name: str) -> bool:
        """Whether the request still waits to be begun."""
        return (self.path / f"{name}.request").exists()

    def call_off(self, name: str, why: str) -> None:
        self._write(f"{name}.off", why.encode())

    def called_off(self, name: str) -> str:
        """Why, "" where it is not."""
        try:
            return self._read(f"{name}.off").decode(errors="replace")
        except FileNotFoundError:
            return ""

    def answer(self, name: str, result: ResetResult) -> None:
        self._write(f"{name}.result", msgspec.json.encode(result))

    def result(self, name: str) -> ResetResult | None:
        """None where there is none."""
        try:
            return msgspec.json.decode(self._read(f"{name}.result"), type=ResetResult)
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def locked(self, name: str, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the lock of an attempt. Raises ``Locked`` as well."""
        with files.locked(self.path, f"{name}.lock", wait_s):
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
        kept = "lock" if self.is_locked(name) else ""
        for suffix in _SUFFIXES:
            if suffix != kept:
                (self.path / f"{name}.{suffix}").unlink(missing_ok=True)

    def names(self) -> list[str]:
        """All attempts of which there is a file."""
        known = {f".{suffix}" for suffix in _SUFFIXES}
        try:
            return sorted({path.stem for path in self.path.iterdir() if path.suffix in known})
        except FileNotFoundError:
            return []

    def _read(self, file: str) -> bytes:
        with files.opened(self.path) as folder:
            return files.read(folder, file, MAX_BYTES)

    def _write(self, file: str, content: bytes) -> None:
        if len(content) > MAX_BYTES:
            raise ValueError(f"{file} would have {len(content)} bytes; at most {MAX_BYTES} are right")
        with files.opened(self.path) as folder:
            files.write(folder, file, content)
