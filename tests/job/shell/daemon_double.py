"""The daemon's end of the link: a real socket that speaks the lines, and does what a test tells it to."""

import os
import queue
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from nodeagent.job.lines import (
    AskChips,
    Bye,
    ChipReading,
    ChipReadings,
    JobBegin,
    Line,
    ReportTaken,
    SupervisorHello,
    Welcome,
    decode,
    encode,
)
from nodeagent.job.model import RunEvent, RunReport, RunRequest, Wish
from tests.waiting import WAIT_LIMIT_S

T = TypeVar("T", bound=Line)


class DaemonDouble:
    """Takes what is said at once, and answers each question with ``chips`` and ``holders``.

    ``grants``: a supervisor that begins is wanted to run.
    """

    def __init__(self, path: Path, *, grants: bool = True, takes: bool = True) -> None:
        self.grants = grants
        self.takes = takes
        self.answers_chips = True
        self.defaults: Mapping[str, str] = {}
        self.limits: Mapping[str, str] = {}
        self.resets: Mapping[str, str] = {}
        self.chips: tuple[ChipReading, ...] = ()
        self.holders: tuple[int, ...] | None = None
        self._received: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._path = path
        self._connection: socket.socket | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def received(self, of: type[T], limit_s: float = WAIT_LIMIT_S) -> T:
        """The next line of that kind; others before it are passed over."""
        end_s = time.monotonic() + limit_s
        while True:
            try:
                line = self._received.get(timeout=max(0.0, end_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {of.__name__} came") from None
            if isinstance(line, of):
                return line

    def received_word(self, what: RunEvent) -> RunReport:
        while True:
            said = self.received(RunReport)
            if said.what is what:
                return said

    def want(self, wish: Wish, run: int, **more: object) -> None:
        self.send(RunRequest(wish=wish, run=run, **more))  # type: ignore[arg-type]

    def send(self, line: Line) -> None:
        assert self._connection is not None
        self._connection.sendall(encode(line))

    def hang_up(self) -> None:
        """As a daemon that is ended."""
        assert self._connection is not None
        self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)  # noqa: PTH108

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connection = connection
            with suppress(OSError), connection.makefile("rb") as lines:
                for line in lines:
                    self._answer(decode(line))

    def _answer(self, line: Line) -> None:
        if isinstance(line, SupervisorHello):
            self.send(
                Welcome(
                    job="slurm:7.0",
                    version="test",
                    defaults=self.defaults,
                    limits=self.limits,
                    resets=self.resets,
                )
            )
        elif isinstance(line, JobBegin) and self.grants:
            self.want(Wish.RUN, line.run)
        elif isinstance(line, RunReport | Bye) and self.takes:
            self.send(ReportTaken(number=line.number))
        elif isinstance(line, AskChips) and self.answers_chips:
            self.send(
                ChipReadings(
                    number=line.number,
                    chips=tuple(replace(each, holders=self.holders) for each in self.chips),
                )
            )
        self._received.put(line)


@contextmanager
def opened(path: Path, **more: bool) -> Iterator[DaemonDouble]:
    daemon = DaemonDouble(path, **more)
    try:
        yield daemon
    finally:
        daemon.close()
