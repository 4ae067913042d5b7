"""The real daemon on a state directory: one life after another, each ended as the story wants.

It knows the process, its configuration and its health service; what the daemon emits is followed by
``subscriber``. Every wait ends with the daemon: one that dies says why in the failure.
"""

import asyncio
import contextlib
import json
import random
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import grpc
from click.testing import CliRunner
from grpc_health.v1 import health_pb2

from nodeagent.cli.main import main
from nodeagent.client import AsyncClient, ClientError
from tests.harness.configuration import ROOT, Files
from tests.sources import only_named
from tests.waiting import WAIT_LIMIT_S

COMMAND = (sys.executable, "-m", "nodeagent.cli")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

SERVING = "SERVING"
NOT_SERVING = "NOT_SERVING"

_HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
# A connection of its own: a shared one may still be that of the daemon before, which was killed.
_ITS_OWN = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
)

_one_command = threading.Lock()
"""Whoever runs one has the standard output to itself."""

Answer = TypeVar("Answer")


@dataclass(kw_only=True)
class Daemon:
    """``folder`` holds everything of it. Change a field, and the next ``start`` works with it.

    ``agent`` and ``kmsg`` are further lines of the sections of the agent and of that driver, ``sections``
    further sections; ``configuration`` is the whole file in place of what they make. ``boot_id`` is a file
    that stands in for the kernel's, in a mount namespace of the daemon's own (needs root). ``within`` is a
    command that runs the daemon's.
    """

    folder: Path
    kernel_log: Path
    agent: Sequence[str] = ()
    kmsg: Sequence[str] = ()
    sections: Sequence[str] = ()
    metrics: str = ""
    configuration: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    boot_id: Path | None = None
    within: Sequence[str] = ()
    stdout: int = asyncio.subprocess.DEVNULL
    process: asyncio.subprocess.Process | None = None

    @property
    def files(self) -> Files:
        return Files(self.folder)

    @property
    def state(self) -> Path:
        return self.files.state

    @property
    def socket(self) -> Path:
        return self.files.socket

    @property
    def tables(self) -> Path:
        """The site's tables, above the shipped ones of the agent itself."""
        return self.files.site

    @property
    def config(self) -> Path:
        return self.files.configuration

    @property
    def log(self) -> str:
        """What all lives wrote to standard error."""
        return self.files.log.read_text()

    @property
    def running(self) -> asyncio.subprocess.Process:
        assert self.process is not None
        return self.process

    def configure(self) -> None:
        """Writes its configuration and the tables that this names."""
        self.tables.mkdir(exist_ok=True)
        self.files.take_of_shipped("agent")
        if self.configuration:
            self.config.write_text(only_named(self.configuration))
            return
        self.files.write_configuration(
            self.kernel_log,
            self.tables_read(),
            agent=self.agent,
            metrics=self.metrics,
            kmsg=self.kmsg,
            sections=self.sections,
        )

    def environment(self) -> Mapping[str, str]:
        return self.files.environment(self.tables_read())

    def tables_read(self) -> Sequence[Path]:
        """The folders, the lowest first."""
        return self.files.base, self.tables

    async def comes(self, found: Callable[[], object], what: str) -> None:
        """Wait for what nobody announces; ``found`` may be a coroutine function."""
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                while True:
                    result = found()
                    if await result if asyncio.iscoroutine(result) else result:
                        return
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"never came: {what}\n{self.log[-3000:]}") from None

    async def spawn(self) -> None:
        """Start it and wait for nothing."""
        self.configure()
        command: tuple[str | Path, ...] = (*self.within, *COMMAND, "run", "--config", self.config, "--stream")
        if self.boot_id is not None:
            bind = f'mount --bind "{self.boot_id}" {BOOT_ID} && exec "$@"'
            command = ("unshare", "--mount", "sh", "-c", bind, "sh", *command)
        with self.files.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                env={**self.environment(), **self.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self.stdout,
                stderr=log,
            )

    async def start(self) -> None:
        """Start it and wait until it serves."""
        await self.spawn()
        async with self.health() as health:
            await health.until(SERVING)

    async def kill(self) -> None:
        """Kill -9."""
        if self.running.returncode is None:
            self.running.kill()
        await self.running.wait()

    async def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.running.send_signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end; the exit status."""
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self.running.wait()

    async def restart(self) -> None:
        assert await self.stop() == 0, self.log
        await self.start()

    async def status(self) -> dict[str, Any]:
        """What ``nodeagent status`` says."""
        said: dict[str, Any] = json.loads((await self.command("status", "--socket", self.socket))[1])
        return said

    async def command(self, *arguments: str | Path) -> tuple[int, str]:
        """(exit status, stdout) of a command, in JSON. In this process, as ``tests/cli`` runs them: polls ask
        for ``status`` many times, and a process of its own is most of what that costs.
        """
        return await asyncio.to_thread(_said, [*map(str, arguments), "-o", "json"])

    async def text(self, *arguments: str | Path) -> str:
        """What a command prints for people."""
        return (await asyncio.to_thread(_said, list(map(str, arguments))))[1]

    async def asked(self, ask: Callable[[AsyncClient], Awaitable[Answer]]) -> Answer:
        """A client's answer. gRPC notices a while after others of its process that the daemon is back."""
        async with asyncio.timeout(WAIT_LIMIT_S), AsyncClient(self.socket) as client:
            while True:
                try:
                    return await ask(client)
                except ClientError as refused:
                    if refused.status != "UNAVAILABLE":
                        raise
                await asyncio.sleep(0.05)

    def worker(self) -> int:
        """The pid of the kernel log's worker."""
        (pid,) = self.workers("kmsg")
        return pid

    def workers(self, source: str) -> list[int]:
        """The pids of the source's workers that there are."""
        listed = Path(f"/proc/{self.running.pid}/task/{self.running.pid}/children").read_text().split()
        return [int(pid) for pid in listed if _command(int(pid))[1:4] == ["-m", "nodeagent.worker", source]]

    @asynccontextmanager
    async def health(self) -> AsyncIterator["Health"]:
        """Follows ``grpc.health.v1``, from its first word on, also where the socket is yet to come."""
        async with grpc.aio.insecure_channel(f"unix:{self.socket}", options=_ITS_OWN) as channel:
            watch = channel.unary_stream(
                _HEALTH_WATCH,
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            stream = watch(health_pb2.HealthCheckRequest(), wait_for_ready=True)
            try:
                yield Health(self, stream)
            finally:
                stream.cancel()


class Health:
    """``statuses`` is every answer so far, in order."""

    def __init__(self, daemon: Daemon, stream: Any) -> None:
        self._daemon = daemon
        self._stream = stream
        self.statuses: list[str] = []

    async def until(self, status: str) -> None:
        """Wait for the next answer that says so. Fails if the daemon ends first."""
        ended = asyncio.create_task(self._daemon.running.wait())
        reading = asyncio.create_task(self._until(status))
        try:
            await asyncio.wait((ended, reading), timeout=WAIT_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
            assert reading.done(), f"not {status}, but {self.statuses}:\n{self._daemon.log}"
            await reading
        finally:
            for task in (ended, reading):
                task.cancel()

    async def _until(self, status: str) -> None:
        async for answer in self._stream:
            self.statuses.append(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
            if self.statuses[-1] == status:
                return
        raise AssertionError(f"the stream ended after {self.statuses}")


def _said(words: Sequence[str]) -> tuple[int, str]:
    with _one_command:
        ran = CliRunner().invoke(main, words, prog_name="nodeagent")
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    sys.stderr.write(ran.stderr)
    return ran.exit_code, ran.stdout


def free_port() -> int:
    """One that nobody listens on now, and none that the kernel gives to whoever asks for any."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def _command(pid: int) -> list[str]:
    """The words; none of one that has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    return []
