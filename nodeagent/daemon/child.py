"""A worker process and its three pipes, from exec to exit. It judges nothing.

Nothing in here waits on the child: reports come through a bounded queue, its exit through a pidfd,
orders go into a buffer that is never drained. Nothing of ours is inherited but the three pipes, and
stderr is a pipe of its own, so that a child left behind keeps nothing of the daemon's open.
"""

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from nodeagent.worker import protocol
from nodeagent.worker.protocol import LineSplitter, ProtocolError

DRAIN_LIMIT_S: Final = 1.0
"""How long after the exit its pipes are read; a grandchild could hold them open for ever."""

MAX_UNSENT_BYTES: Final = 2 * protocol.MAX_LINE_BYTES
MAX_STDERR_LINE: Final = 2000
STDERR_LINES_PER_PERIOD: Final = 40
STDERR_PERIOD_S: Final = 10.0
LAST_WORDS: Final = 12
MAX_LAST_WORDS: Final = 800

D_SAMPLES: Final = 3
D_SAMPLE_PAUSE_S: Final = 0.03
"""A thread that only waits for a disk is in D state for less than this."""


@dataclass(frozen=True, slots=True)
class Said:
    child: "Child"
    report: protocol.Report


@dataclass(frozen=True, slots=True)
class Garbled:
    child: "Child"
    reason: str


@dataclass(frozen=True, slots=True)
class Exited:
    """``how`` is for people: "killed by SIGSEGV", "exit status 3"."""

    child: "Child"
    how: str


Happening = Said | Garbled | Exited


class Child:
    """Spawn with ``Child.spawn``; everything it says or does arrives in ``heard``."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", heard: "asyncio.Queue[Happening]", log: logging.Logger
    ) -> None:
        self._process = process
        self._heard = heard
        self._log = log
        self._pidfd = os.pidfd_open(process.pid)
        self._exited = asyncio.Event()
        self._orders: asyncio.WriteTransport | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)

    @classmethod
    async def spawn(
        cls, command: Sequence[str], heard: "asyncio.Queue[Happening]", log: logging.Logger
    ) -> "Child":
        """Raises ``OSError`` if it cannot be started."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(  # noqa: ASYNC220  it waits for exec only, and no child of ours is waited for
            command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, close_fds=True, start_new_session=True
        )
        child = cls(process, heard, log)
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

    def send(self, order: protocol.Order) -> bool:
        """Put the order into the pipe's buffer; false if it does not take its orders out."""
        orders = self._orders
        if orders is None or orders.is_closing() or orders.get_write_buffer_size() > MAX_UNSENT_BYTES:
            return False
        orders.write(protocol.encode(order))
        return True

    def hang_up(self) -> None:
        """End its stdin, which asks it to end."""
        if self._orders is not None:
            self._orders.close()

    def signal(self, number: signal.Signals) -> None:
        """By pidfd: the number of a child that has ended may already be another's."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

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
        """Whether it has exited by then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._exited.wait()
        return self._exited.is_set()

    async def release(self) -> None:
        """Let go of the pipes and tasks. A child that still runs is left behind, knowingly."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._pidfd)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in self._transports:
            transport.close()
        os.close(self._pidfd)
        if self._process.poll() is None:
            # Popen would complain of a child never waited for; nobody will wait for this one.
            self._process.returncode = -signal.SIGKILL

    async def _discard(self) -> None:
        """Nobody wants it any more before it got an order: it holds nothing, so it may be killed."""
        process = self._process
        process.kill()
        process.wait()
        await self.release()
        for pipe in (process.stdin, process.stdout, process.stderr):
            cast(IO[bytes], pipe).close()

    # ------------------------------------------------------------------ pipes

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        process = self._process
        loop.add_reader(self._pidfd, self._exited.set)
        transport, _ = await loop.connect_write_pipe(asyncio.Protocol, cast(IO[bytes], process.stdin))
        self._orders = transport
        self._transports.append(transport)
        reports = await self._reader(cast(IO[bytes], process.stdout))
        errors = await self._reader(cast(IO[bytes], process.stderr))
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
        splitter = LineSplitter()
        while chunk := await reader.read(65536):
            oversized = splitter.oversized
            for line in splitter.feed(chunk):
                try:
                    happening: Happening = Said(self, protocol.decode_report(line))
                except ProtocolError as error:
                    happening = Garbled(self, str(error))
                await self._heard.put(happening)
            for _ in range(splitter.oversized - oversized):
                await self._heard.put(Garbled(self, f"a line of more than {protocol.MAX_LINE_BYTES} bytes"))

    async def _read_errors(self, reader: asyncio.StreamReader) -> None:
        splitter = LineSplitter(MAX_STDERR_LINE)
        begun_s, told, untold = time.monotonic(), 0, 0
        while chunk := await reader.read(8192):
            if time.monotonic() - begun_s > STDERR_PERIOD_S:
                if untold:
                    self._log.warning("%d more lines from the worker were not logged", untold)
                begun_s, told, untold = time.monotonic(), 0, 0
            for line in splitter.feed(chunk):
                text = _printable(line)
                self._last_words.append(text)
                if told < STDERR_LINES_PER_PERIOD:
                    told += 1
                    self._log.warning("worker %d: %s", self.pid, text)
                else:
                    untold += 1

    async def _report_exit(self, readers: Sequence["asyncio.Task[None]"]) -> None:
        await self._exited.wait()
        asyncio.get_running_loop().remove_reader(self._pidfd)
        status = self._process.wait()
        await asyncio.wait(readers, timeout=DRAIN_LIMIT_S)
        await self._heard.put(Exited(self, _told(status)))

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


def _told(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    if status == -signal.SIGVTALRM:
        return "killed by SIGVTALRM: it computed for longer than it allows itself"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _printable(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    )
