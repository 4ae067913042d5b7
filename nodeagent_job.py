"""For the programs of a job: ``nodeagent_job.beat(step=7)`` reports that the program goes on, and
``nodeagent_job.subscribe()`` learns what a fault of the job's chips asks for.

It needs nothing but Python, works with or without a supervisor, and never harms the program: ``beat`` sends
one datagram, or two with a step time, never blocks and never raises; a subscription never raises, and waits
no longer than it is allowed to.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import NamedTuple

__all__ = ["Handling", "Subscription", "beat", "subscribe"]

_AGAIN_S = 30.0
"""A supervisor that was started again learns of its subscribers within this time."""


RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Where launchers put the rank of a process."""


def beat(
    step: int | None = None,
    phase: str | None = None,
    checkpoint: int | None = None,
    *,
    compute_s: float | None = None,
    rank: int | None = None,
    group: str | None = None,
) -> None:
    """Report to the supervisor of this job the step, the phase, and the number of the newest checkpoint.

    ``phase`` is train (as where none is given), eval, checkpoint, compile or load; only in train the steps
    must go on soon. Without a supervisor, so without ``NODEAGENT_BEAT``, nothing happens.

    ``compute_s``, with ``step``: the seconds that this rank worked on the step by itself, without any wait
    for other ranks. If every rank reports it, a slow rank is found. ``rank`` is known from the environment
    below the usual launchers. ``group``: ranks of one group do the same work, as those of a pipeline stage.
    """
    path = os.environ.get("NODEAGENT_BEAT")
    if not path:
        return
    if compute_s is not None and step is not None and rank is None:
        rank = next((int(each) for name in RANKS if (each := os.environ.get(name, "")).isdigit()), None)
    try:
        texts = []
        if compute_s is None or phase is not None or checkpoint is not None:
            texts.append(_text(step=step, phase=phase, checkpoint=checkpoint))
        if compute_s is not None and step is not None and rank is not None:
            # By itself: a supervisor of an earlier version passes over what it does not know.
            texts.append(_text(step=step, compute_s=f"{float(compute_s):.6f}", rank=rank, group=group))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            for text in texts:
                sender.sendto(text.encode("ascii", "replace"), path)
    except (
        OSError,
        ValueError,
        TypeError,
    ):  # no listener, or one that does not keep up: the training goes on
        pass


def _text(**values: object) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items() if value is not None)


class Handling(NamedTuple):
    """What the faults of the job's chips ask for: the strictest ``name``, with its chip and code.

    NONE: nothing. RERUN_REQUEST: requests that failed on the chip can be made again; the job is not moved
    for a minute. UNKNOWN: the daemon of the node does not answer. The others are in docs/tables.md.
    """

    name: str
    chip: str = ""
    code: str = ""


class Subscription:
    """``read`` gives each change once, the current state first. For one thread."""

    def __init__(self) -> None:
        self._path = os.environ.get("NODEAGENT_BEAT", "")
        self._asked_s: float | None = None
        self._last: Handling | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind("")  # an address that the kernel chooses: unix(7), Autobind feature
        except OSError:
            self._path = ""

    def fileno(self) -> int:
        """For ``select`` and its like: there may be something to read."""
        return self._socket.fileno()

    def read(self, timeout_s: float | None = None) -> Handling | None:
        """The next change; None if there is none within ``timeout_s``, or no supervisor. ``timeout_s`` None:
        it is waited for without a limit.
        """
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while self._path:
            self._ask()
            left_s = _AGAIN_S if end_s is None else max(0.0, end_s - time.monotonic())
            select.select([self._socket], [], [], min(left_s, _AGAIN_S))
            found = self._received()
            if found is not None and found != self._last:
                self._last = found
                return found
            if end_s is not None and time.monotonic() >= end_s:
                return None
        return None

    def close(self) -> None:
        self._path = ""
        self._socket.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self) -> None:
        now_s = time.monotonic()
        if self._asked_s is not None and now_s - self._asked_s < _AGAIN_S:
            return
        self._asked_s = now_s  # also where it fails: asked again then
        try:
            self._socket.sendto(b"subscribe", self._path)
        except (OSError, ValueError):  # no supervisor now, or one that does not keep up
            return

    def _received(self) -> Handling | None:
        """The newest that is there."""
        found = None
        while True:
            try:
                data, sender = self._socket.recvfrom(1024)
            except OSError:
                return found
            if sender == self._path:
                found = _handling(data.decode("ascii", "replace")) or found


def subscribe() -> Subscription:
    """Learn what the faults of the job's chips ask for, from now on."""
    return Subscription()


def _handling(text: str) -> Handling | None:
    parts = dict(part.partition("=")[::2] for part in text.split())
    name = parts.get("handling")
    return Handling(name, parts.get("chip", ""), parts.get("code", "")) if name else None
