"""The datagrams in which the program of a job reports its progress: ``step=7 phase=train checkpoint=3``; how
long a rank has worked on a step by itself: ``step=7 compute_s=0.81 rank=2 group=stage0``; and those with
which the program subscribes to faults.

A socket that anybody in the job may write to. What cannot be read is counted and passed over: a slip in a
training script must end no job. What a beat is, is imported with the first: most commands send none.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nodeagent.job.model import RunRequest
    from nodeagent.job.sample import Beat, ProgramPhase, StepTime
    from nodeagent.job.watching.subscribers import Subscribers

BEAT_VARIABLE: Final = "NODEAGENT_BEAT"
"""Where the program finds the socket's path."""

MAX_BYTES: Final = 1024
SUBSCRIBE: Final = b"subscribe"
"""No beat, but the wish to be sent what the faults of the job's chips ask for: ``subscribers``."""

MAX_AT_ONCE: Final = 256
"""So many are read in one turn of the loop: the rest waits for the next."""

MOST_SECONDS: Final = 1e6
MAX_GROUP_CHARACTERS: Final = 64

_UCRED: Final = struct.Struct("3i")
_CREDENTIALS_BYTES: Final = socket.CMSG_SPACE(_UCRED.size)


class BeatError(ValueError):
    """This is no beat. The message names the part, and what would be right."""


def parse(data: bytes, t_s: float, pid: int = 0) -> Beat | StepTime:
    """Parts ``name=value`` in any order, each at most once; with ``compute_s`` it is a step time. ``pid``: of
    the sender. Raises ``BeatError``.
    """
    parts: dict[str, str] = {}
    try:
        texts = data.decode("ascii").split()
    except UnicodeDecodeError:
        raise BeatError(f"not ASCII: {data[:40]!r}") from None
    for text in texts:
        name, _, value = text.partition("=")
        if name in parts:
            raise BeatError(f"{name}: given twice")
        parts[name] = value
    if not parts:
        raise BeatError("empty")
    return _step_time(parts, t_s, pid) if "compute_s" in parts else _beat(parts, t_s)


def _beat(parts: Mapping[str, str], t_s: float) -> Beat:
    from nodeagent.job.sample import Beat, ProgramPhase

    _check_names(parts, ("step", "phase", "checkpoint"), "step=NUMBER, phase=NAME or checkpoint=NUMBER")
    numbers = {name: _number(name, parts[name]) for name in ("step", "checkpoint") if name in parts}
    return Beat(
        t_s=t_s,
        step=numbers.get("step"),
        phase=_phase(parts["phase"]) if "phase" in parts else ProgramPhase.TRAIN,
        checkpoint=numbers.get("checkpoint"),
    )


def _step_time(parts: Mapping[str, str], t_s: float, pid: int) -> StepTime:
    from nodeagent.job.sample import StepTime

    right = "step=NUMBER, compute_s=SECONDS, rank=NUMBER or group=NAME"
    _check_names(parts, ("step", "compute_s", "rank", "group"), right)
    for name in ("step", "rank"):
        if name not in parts:
            raise BeatError(f"{name}: missing, next to compute_s")
    return StepTime(
        t_s=t_s,
        step=_number("step", parts["step"]),
        compute_s=_seconds("compute_s", parts["compute_s"]),
        rank=_number("rank", parts["rank"]),
        group=_group(parts.get("group", "")),
        pid=pid,
    )


def _check_names(parts: Mapping[str, str], known: tuple[str, ...], right: str) -> None:
    for name, value in parts.items():
        if name not in known:
            raise BeatError(f"{f'{name}={value}'[:40]!r}: {right}")


def _phase(value: str) -> ProgramPhase:
    from nodeagent.job.sample import ProgramPhase

    try:
        return ProgramPhase(value)
    except ValueError:
        raise BeatError(
            f"phase: one of {', '.join(each.value for each in ProgramPhase)}, not {value!r}"
        ) from None


def _number(name: str, value: str) -> int:
    if not value.isdigit() or len(value) > 18:
        raise BeatError(f"{name}: a whole number from 0 with at most 18 digits, not {value[:40]!r}")
    return int(value)


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < MOST_SECONDS:
        raise BeatError(f"{name}: seconds from 0 to {MOST_SECONDS:g}, not {value[:40]!r}")
    return seconds


def _group(value: str) -> str:
    if len(value) > MAX_GROUP_CHARACTERS or not value.isprintable():
        raise BeatError(f"group: at most {MAX_GROUP_CHARACTERS} characters, not {value[:80]!r}")
    return value


def _pid(ancillary: Iterable[tuple[int, int, bytes]]) -> int:
    """Of the sender, as numbered here: unix(7), SCM_CREDENTIALS. 0 if the kernel did not add it."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and len(data) >= _UCRED.size:
            return int(_UCRED.unpack_from(data)[0])
    return 0


class BeatSocket:
    """``bad`` counts what was no beat, ``last_bad`` is the reason for the last. ``subscriptions`` counts the
    datagrams that ask for one. Raises ``OSError``.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.bad = 0
        self.last_bad = ""
        self.subscriptions = 0
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 # of a supervisor before, which the lock of the folder shows to be dead
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(path)
        self._subscribers: Subscribers | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self, t_s: float) -> list[Beat | StepTime]:
        found = []
        for _ in range(MAX_AT_ONCE):
            try:
                data, ancillary, _flags, sender = self._socket.recvmsg(MAX_BYTES, _CREDENTIALS_BYTES)
            except BlockingIOError:
                break
            if data.strip() == SUBSCRIBE:
                self._subscribe(sender)
                continue
            try:
                found.append(parse(data, t_s, _pid(ancillary)))
            except BeatError as error:
                self.bad += 1
                self.last_bad = str(error)
        return found

    def _subscribe(self, sender: str | bytes | None) -> None:
        if self._subscribers is None:
            from nodeagent.job.watching.subscribers import Subscribers

            self._subscribers = Subscribers()
        self.subscriptions += 1
        if wrong := self._subscribers.add(sender):
            self.bad += 1
            self.last_bad = wrong

    def send(self, wanted: RunRequest | None) -> None:
        """What the daemon wants now, None if that is not known, to the programs that have subscribed."""
        if self._subscribers is not None:
            from nodeagent.job.watching.subscribers import text_of

            self._subscribers.send(text_of(wanted), self._socket.sendto)

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            os.unlink(self.path)  # noqa: PTH108
