"""The datagrams in which the program of a job reports its progress: ``step=7 phase=train checkpoint=3``, and
those with which it subscribes to faults.

A socket that anybody in the job may write to. What cannot be read is counted and passed over: a slip in a
training script must end no job. What a beat is, is imported with the first: most commands send none.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nodeagent.job.model import RunRequest
    from nodeagent.job.sample import Beat, ProgramPhase
    from nodeagent.job.watching.subscribers import Subscribers

BEAT_VARIABLE: Final = "NODEAGENT_BEAT"
"""Where the program finds the socket's path."""

MAX_BYTES: Final = 1024
SUBSCRIBE: Final = b"subscribe"
"""No beat, but the wish to be sent what the faults of the job's chips ask for: ``subscribers``."""

MAX_AT_ONCE: Final = 256
"""So many are read in one turn of the loop: the rest waits for the next."""


class BeatError(ValueError):
    """This is no beat. The message names the part, and what would be right."""


def parse(data: bytes, t_s: float) -> Beat:
    """Parts ``name=value`` in any order, each at most once. Raises ``BeatError``."""
    from nodeagent.job.sample import Beat, ProgramPhase

    numbers: dict[str, int] = {}
    phase = ProgramPhase.TRAIN
    seen: set[str] = set()
    try:
        parts = data.decode("ascii").split()
    except UnicodeDecodeError:
        raise BeatError(f"not ASCII: {data[:40]!r}") from None
    for part in parts:
        name, _, value = part.partition("=")
        if name in seen:
            raise BeatError(f"{name}: given twice")
        seen.add(name)
        if name == "phase":
            phase = _phase(value)
        elif name in ("step", "checkpoint"):
            numbers[name] = _number(name, value)
        else:
            raise BeatError(f"{part[:40]!r}: step=NUMBER, phase=NAME or checkpoint=NUMBER")
    if not seen:
        raise BeatError("empty")
    return Beat(t_s=t_s, step=numbers.get("step"), phase=phase, checkpoint=numbers.get("checkpoint"))


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
        self._socket.bind(path)
        self._subscribers: Subscribers | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self, t_s: float) -> list[Beat]:
        found = []
        for _ in range(MAX_AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(MAX_BYTES)
            except BlockingIOError:
                break
            if data.strip() == SUBSCRIBE:
                self._subscribe(sender)
                continue
            try:
                found.append(parse(data, t_s))
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
