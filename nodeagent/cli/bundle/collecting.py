"""Runs what an archive is made of, each part as a process of its own with a time limit.

A part that hangs, crashes or prints without end costs its own time and space, and nothing else: also a file
on a disk that does not answer is read by such a process. A process that the kernel does not let go is left
behind. What is printed stays in memory, within the limit of each part. Nothing is written here.
"""

import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from nodeagent.cli.shared.errors import CommandFailure

AT_ONCE: Final = 4
MOST_REMARKS: Final = 4000
"""Bytes of standard error that are kept of a part."""

_TICK_S: Final = 0.05
_READ: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file of the archive. ``run`` prints its content, in a process of its own, and gives its exit status.

    ``source`` is for people: a command, or a path. ``keeps_end``: of too much output the end is kept.
    ``also_ok``: exit statuses other than 0 with which the output is complete.
    """

    item: str
    file: str
    source: str
    run: Callable[[], int]
    limit_s: float = 10.0
    limit_bytes: int = 4 << 20
    keeps_end: bool = False
    also_ok: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """``error`` "" if it is complete. ``remarks`` is what it printed on standard error."""

    part: Part
    content: bytes = b""
    remarks: str = ""
    error: str = ""
    truncated: bool = False
    seconds: float = 0.0


def collect(parts: Sequence[Part], limit_s: float) -> list[Collected]:
    """One for each part, in their order. What has not ended after ``limit_s`` is ended, or not begun."""
    until_s = time.monotonic() + limit_s
    waiting, running, done = deque(parts), list[_Running](), dict[str, Collected]()
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                now_s = time.monotonic()
                while waiting and len(running) < AT_ONCE and now_s < until_s:
                    running.append(_Running(waiting.popleft(), selector, now_s, until_s))
                if now_s >= until_s:
                    for part in waiting:
                        done[part.file] = Collected(part=part, error=f"not begun within {limit_s:.0f} s")
                    waiting.clear()
                _read_ready(selector)
                for each in [each for each in running if each.has_ended(time.monotonic())]:
                    running.remove(each)
                    done[each.part.file] = each.result()
        finally:
            for each in running:  # only where this is interrupted
                each.kill()
    return [done[part.file] for part in parts]


def _read_ready(selector: selectors.BaseSelector) -> None:
    for key, _ in selector.select(_TICK_S):
        kept: _Kept = key.data
        data = os.read(key.fd, _READ)
        if data:
            kept.add(data)
        else:
            selector.unregister(key.fd)
            kept.ended = True


@dataclass(slots=True)
class _Kept:
    """Of what is printed, the beginning or the end, within a limit."""

    limit_bytes: int
    keeps_end: bool
    chunks: deque[bytes] = field(default_factory=deque)
    size: int = 0
    truncated: bool = False
    ended: bool = False

    def add(self, data: bytes) -> None:
        room = self.limit_bytes - self.size
        if len(data) > room:
            self.truncated = True
            if not self.keeps_end:
                data = data[: max(0, room)]
        self.chunks.append(data)
        self.size += len(data)
        while self.keeps_end and self.size - len(self.chunks[0]) >= self.limit_bytes:
            self.size -= len(self.chunks.popleft())

    def content(self) -> bytes:
        """Whole lines where the beginning was dropped."""
        whole = b"".join(self.chunks)
        if not self.truncated or not self.keeps_end:
            return whole
        return whole[-self.limit_bytes :].partition(b"\n")[2]


class _Running:
    """A process and the group that it leads."""

    def __init__(self, part: Part, selector: selectors.BaseSelector, now_s: float, until_s: float) -> None:
        self.part = part
        self._selector = selector
        self._begun_s = now_s
        self._ended_s = now_s
        self._until_s = min(until_s, now_s + part.limit_s)
        self._status: int | None = None
        self._killed = ""
        self._output = _Kept(part.limit_bytes, part.keeps_end)
        self._errors = _Kept(MOST_REMARKS, keeps_end=False)
        self._pid, self._descriptors = _started(part.run)
        for descriptor, kept in zip(self._descriptors, (self._output, self._errors), strict=True):
            selector.register(descriptor, selectors.EVENT_READ, kept)

    def has_ended(self, now_s: float) -> bool:
        """Ends it where its time is over or its output too long. What it has left running ends with it."""
        if self._status is None:
            self._poll()
        if self._status is None:
            full = self._output.truncated and not self._output.keeps_end
            if not full and now_s < self._until_s:
                return False
            self._killed = "" if full else f"ended after {now_s - self._begun_s:.0f} s"
            self.kill()
            self._ended_s = now_s
            self._poll()
        elif not (self._output.ended and self._errors.ended) and self._has_more():
            return False
        self.kill()
        self._close()
        return True

    def kill(self) -> None:
        """It and its group; also what it has left running."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def result(self) -> Collected:
        remarks = self._errors.content().decode(errors="replace").strip()
        status = self._status or 0
        error = self._killed
        if not error and not self._output.truncated and status not in (0, *self.part.also_ok):
            last = remarks.splitlines()[-1:] or [""]
            error = f"exit status {status}{f': {last[0]}' if last[0] else ''}"
        return Collected(
            part=self.part,
            content=self._output.content(),
            remarks=remarks,
            error=error,
            truncated=self._output.truncated,
            seconds=self._ended_s - self._begun_s,
        )

    def _poll(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._status = os.waitstatus_to_exitcode(status)
            self._ended_s = time.monotonic()

    def _has_more(self) -> bool:
        """Whether there is more to read; a process that it left behind may hold the pipe."""
        open_ones = [each for each in self._descriptors if each in self._selector.get_map()]
        with selectors.DefaultSelector() as ready:
            for descriptor in open_ones:
                ready.register(descriptor, selectors.EVENT_READ)
            return bool(open_ones and ready.select(0))

    def _close(self) -> None:
        for descriptor in self._descriptors:
            with suppress(KeyError):
                self._selector.unregister(descriptor)
            os.close(descriptor)


def _started(run: Callable[[], int]) -> tuple[int, tuple[int, int]]:
    """The process, and the ends at which its output and its errors are read."""
    output, errors = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _run_in_child(run, output[1], errors[1])
    os.close(output[1])
    os.close(errors[1])
    with suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)  # here too: a time limit may end before the child has done it
    return pid, (output[0], errors[0])


def _run_in_child(run: Callable[[], int], output: int, errors: int) -> None:
    """Does not return."""
    status = 1
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        status = run()
    except Exception as error:  # noqa: BLE001 - the edge of a process: it reports, and ends
        with suppress(OSError):
            named = (
                str(error)
                if isinstance(error, OSError | CommandFailure)
                else f"{type(error).__name__}: {error}"
            )
            os.write(2, f"{named}\n".encode(errors="replace"))
    finally:
        os._exit(status)
