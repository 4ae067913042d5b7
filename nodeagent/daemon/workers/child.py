"""A worker process and its three pipes, from its start to its exit. It judges nothing.

Nothing in here waits on the child: reports come through a bounded queue, its exit through a pidfd,
orders go into a buffer that is never drained. Nothing of ours is inherited but the three pipes, and
stderr is a pipe of its own, so that a child left behind keeps nothing of the daemon's open.
How a process is started and ended is in ``process``, and in ``hosted``.
"""

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from nodeagent import wire
from nodeagent.daemon.workers.process import SpawnedProcess, WorkerProcess
from nodeagent.system.streams import LineSplitter
from nodeagent.wire import ProtocolError

DRAIN_LIMIT_S: Final = 1.0
"""How long after the exit its pipes are read; a grandchild could hold them open for ever."""

MAX_UNSENT_BYTES: Final = 2 * wire.MAX_LINE_BYTES
MAX_STDERR_LINE: Final = 2000
STDERR_LINES_PER_PERIOD: Final = 40
STDERR_PERIOD_S: Final = 10.0
LAST_WORDS: Final = 12
MAX_LAST_WORDS: Final = 800

D_SAMPLES: Final = 3
D_SAMPLE_PAUSE_S: Final = 0.03
"""A thread that only waits for a disk is in D state for less than this."""


@dataclass(frozen=True, slots=True)
class WorkerReported:
    child: "Child"
    report: wire.Report


@dataclass(frozen=True, slots=True)
class WorkerGarbled:
    child: "Child"
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerExited:
    """``how`` is for people: "killed by SIGSEGV", "exit status 3"."""

    child: "Child"
    how: str


WorkerEvent = WorkerReported | WorkerGarbled | WorkerExited
WorkerEvents = asyncio.Queue[WorkerEvent | None]
"""None: something may be due."""


class Child:
    """Begin with ``Child.of`` or ``Child.spawn``; its reports and its exit arrive in ``inbox``."""

    def __init__(self, process: WorkerProcess, inbox: WorkerEvents, log: logging.Logger) -> None:
        self._process = process
        self._inbox = inbox
        self._log = log
        self._exited = asyncio.Event()
        self._orders: asyncio.WriteTransport | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)

    @classmethod
    async def spawn(cls, command: Sequence[str], inbox: WorkerEvents, log: logging.Logger) -> "Child":
        """Raises ``OSError`` if it cannot be started."""
        return await cls.of(SpawnedProcess(command), inbox, log)

    @classmethod
    async def of(cls, process: WorkerProcess, inbox: WorkerEvents, log: logging.Logger) -> "Child":
        """The child of a process that has just started. If that is cancelled, the process is discarded."""
        child = cls(process, inbox, log)
        try:
            await child._connect()
        except BaseException:
            await child._discard()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The last lines of its stderr."""
        return "\n".join(self._last_words)[-MAX_LAST_WORDS:]

    def send(self, order: wire.Request) -> bool:
        """Put the order into the pipe's buffer; false if it does not take its orders out."""
        orders = self._orders
        if orders is None or orders.is_closing() or orders.get_write_buffer_size() > MAX_UNSENT_BYTES:
            return False
        orders.write(wire.encode(order))
        return True

    def hang_up(self) -> None:
        """End its stdin, which asks it to end."""
        if self._orders is not None:
            self._orders.close()

    def signal(self, number: signal.Signals) -> None:
        """Or, where it cannot be sent that, the end of its stdin at once, with what it has not read."""
        if not self._process.signal(number) and self._orders is not None:
            self._orders.abort()

    async def stuck_threads(self) -> frozenset[str]:
        """The names of its threads that stay in uninterruptible sleep; a device's thread bears its name."""
        stuck = self._sleeping_threads()
        for _ in range(D_SAMPLES - 1):
            if not stuck:
                break
            await asyncio.sleep(D_SAMPLE_PAUSE_S)
            stuck &= self._sleeping_threads()
        return frozenset(name for _, name in stuck)

    async def wait(self, limit_s: float) -> bool:
        """Whether it has exited by then.

        Not by ``asyncio.timeout``: before Python 3.11.3 that raises CancelledError in place of TimeoutError
        where the task was cancelled and cleans up (cpython issue 102780), as the supervisor's does.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), limit_s)
        return self._exited.is_set()

    async def release(self) -> None:
        """Let go of the pipes and tasks. A child that still runs is left behind, knowingly."""
        asyncio.get_running_loop().remove_reader(self._process.pidfd)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in self._transports:
            transport.close()
        self._process.release()

    async def _discard(self) -> None:
        self._process.discard()
        await self.release()
        for pipe in self._process.pipes:
            pipe.close()

    # ------------------------------------------------------------------ pipes

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = self._process.pipes
        loop.add_reader(self._process.pidfd, self._exited.set)
        transport, _ = await loop.connect_write_pipe(asyncio.Protocol, stdin)
        self._orders = transport
        self._transports.append(transport)
        reports = await self._reader(stdout)
        errors = await self._reader(stderr)
        readers = [
            asyncio.create_task(self._read_reports(reports)),
            asyncio.create_task(self._read_errors(errors)),
        ]
        self._tasks += [*readers, asyncio.create_task(self._report_exit(readers))]

    async def _reader(self, pipe: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._transports.append(transport)
        return reader

    async def _read_reports(self, reader: asyncio.StreamReader) -> None:
        splitter = LineSplitter(wire.MAX_LINE_BYTES)
        while chunk := await reader.read(65536):
            oversized = splitter.oversized
            for line in splitter.feed(chunk):
                try:
                    happening: WorkerEvent = WorkerReported(self, wire.decode_report(line))
                except ProtocolError as error:
                    happening = WorkerGarbled(self, str(error))
                await self._inbox.put(happening)
            for _ in range(splitter.oversized - oversized):
                await self._inbox.put(WorkerGarbled(self, f"a line of more than {wire.MAX_LINE_BYTES} bytes"))

    async def _read_errors(self, reader: asyncio.StreamReader) -> None:
        splitter = LineSplitter(MAX_STDERR_LINE)
        begun_s, logged, omitted = time.monotonic(), 0, 0
        while chunk := await reader.read(8192):
            if time.monotonic() - begun_s > STDERR_PERIOD_S:
                if omitted:
                    self._log.warning("%d more lines from the worker were not logged", omitted)
                begun_s, logged, omitted = time.monotonic(), 0, 0
            for line in splitter.feed(chunk):
                text = _printable(line)
                self._last_words.append(text)
                if logged < STDERR_LINES_PER_PERIOD:
                    logged += 1
                    self._log.warning("worker %d: %s", self.pid, text)
                else:
                    omitted += 1

    async def _report_exit(self, readers: Sequence["asyncio.Task[None]"]) -> None:
        await self._exited.wait()
        asyncio.get_running_loop().remove_reader(self._process.pidfd)
        how = self._process.how_it_ended()
        await asyncio.wait(readers, timeout=DRAIN_LIMIT_S)
        await self._inbox.put(WorkerExited(self, how))

    def _sleeping_threads(self) -> set[tuple[str, str]]:
        """(thread id, name) of those in D state now, from /proc/PID/task/*/stat of this child only."""
        found = set()
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{self.pid}/task").iterdir():
                with suppress(FileNotFoundError, ProcessLookupError):
                    head, _, tail = (task / "stat").read_text(errors="replace").rpartition(")")
                    if tail.split()[0] == "D":
                        found.add((task.name, head.partition("(")[2]))
        return found


def _printable(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    )
