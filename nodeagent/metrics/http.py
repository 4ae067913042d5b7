"""Serves ``/metrics`` over HTTP from a thread and a loop of its own, also while the daemon's loop is stuck.

A connection is kept for the next request. A client that sends or reads slowly has one short time for each
request. Where there is no place for a connection, an idle or a slow one ends: connecting alone never keeps a
scrape out. What is answered is in ``nodeagent.metrics.pages``. The server of prometheus_client is not used:
it starts a thread for each connection, keeps none, and bounds neither their number, nor their time, nor the
size of a request.
"""

import asyncio
import threading
from collections.abc import Callable
from enum import IntEnum, auto
from typing import Final, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from nodeagent.api.access.sockets import AddressError, listen_at
from nodeagent.metrics.pages import MetricsPages, MetricsRequest

MAX_CONNECTIONS: Final = 64
MAX_HEAD_BYTES: Final = 16 * 1024
REQUEST_LIMIT_S: Final = 5.0
"""From the connection, or the first byte of a later request, to the last byte that is sent."""

IDLE_LIMIT_S: Final = 330.0
"""How long a connection is kept for the next request. Prometheus keeps it for five minutes
(``idleConnTimeout`` in config/http_config.go of prometheus/common): it is the one to end it, so that no
request meets a connection that is just being closed.
"""

_END_OF_HEAD: Final = b"\r\n\r\n"


class MetricsServer:
    """Listens on ``address`` (``host:port``, ``[::1]:port``) from ``start`` to ``stop``. ``is_ready`` is
    called in its thread.
    """

    def __init__(
        self, address: str, collector: Collector, is_ready: Callable[[], bool] = lambda: True
    ) -> None:
        self._address = address
        self._is_ready = is_ready
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        ProcessCollector(registry=self._registry)
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self.port = 0
        """The port listened on, 0 while it is not."""

    def start(self) -> None:
        """Raises ``AddressError`` if the address is not free or is none."""
        try:
            listeners = listen_at(self._address, "metrics.listen")
        except AddressError as error:
            raise AddressError(f'{error}; choose another, or "" for none') from error
        self.port = listeners[0].getsockname()[1]
        serves = threading.Event()

        async def serve() -> None:
            loop, stopped = asyncio.get_running_loop(), asyncio.Event()
            self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
            connections = _Connections(MetricsPages(self._registry, self._is_ready))
            servers = [await loop.create_server(connections.accepted, sock=each) for each in listeners]
            serves.set()
            await stopped.wait()
            for server in servers:
                server.close()
            connections.end()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="metrics", daemon=True)
        self._thread.start()
        serves.wait()

    def stop(self) -> None:
        if self._thread is not None:
            self._stop()
            self._thread.join(REQUEST_LIMIT_S)
            self._thread, self.port = None, 0


class _Connections:
    """The open connections, the oldest first."""

    def __init__(self, pages: MetricsPages) -> None:
        self.pages = pages
        self.open: dict[_Connection, None] = {}

    def accepted(self) -> "_Connection":
        return _Connection(self)

    def make_place(self) -> None:
        """The oldest ends: of those that are idle, else of those that still send, else of those that read,
        else of those that wait for their answer.
        """
        if len(self.open) >= MAX_CONNECTIONS:
            min(self.open, key=lambda connection: connection.state).abort()

    def end(self) -> None:
        for connection in tuple(self.open):
            connection.abort()


class _State(IntEnum):
    """What a connection is doing. Where there is no place, the first of these ends first."""

    IDLE = auto()
    READING = auto()
    WRITING = auto()
    ANSWERING = auto()


class _Connection(asyncio.Protocol):
    """One request and its answer, then the next one."""

    def __init__(self, connections: _Connections) -> None:
        self._connections = connections
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._sent = asyncio.Event()
        self.state = _State.READING

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # Writing pauses for any byte that the kernel does not take, and goes on once it has taken all.
        self._transport.set_write_buffer_limits(high=0)
        self._sent.set()
        self._connections.make_place()
        self._connections.open[self] = None
        self._ends_in(REQUEST_LIMIT_S)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self.state is _State.IDLE:
            self.state = _State.READING
            self._ends_in(REQUEST_LIMIT_S)
        if self.state is _State.READING:
            self._look_for_request()

    def pause_writing(self) -> None:
        self._sent.clear()

    def resume_writing(self) -> None:
        self._sent.set()

    def connection_lost(self, _error: Exception | None) -> None:
        self._forget()
        self._sent.set()

    def abort(self) -> None:
        """End it at once: its place is free for another."""
        self._forget()
        if self._transport is not None:
            self._transport.abort()

    def _forget(self) -> None:
        self._connections.open.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()

    def _ends_in(self, limit_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(limit_s, self.abort)

    def _look_for_request(self) -> None:
        head, end, rest = self._received.partition(_END_OF_HEAD)
        if len(head) > MAX_HEAD_BYTES:
            self.abort()
        elif end and self._transport is not None:
            self.state, self._received = _State.ANSWERING, rest
            # What comes meanwhile stays in the kernel.
            self._transport.pause_reading()
            self._answering = asyncio.create_task(self._answer(self._transport, MetricsRequest(head + end)))

    async def _answer(self, transport: asyncio.Transport, request: MetricsRequest) -> None:
        answer = await self._connections.pages.answer(request)
        if transport.is_closing():
            return
        self.state = _State.WRITING
        transport.write(answer)
        if request.is_last:
            transport.close()
        await self._sent.wait()
        if transport.is_closing():
            return
        self.state = _State.IDLE
        self._ends_in(IDLE_LIMIT_S)
        transport.resume_reading()
        if self._received:
            self.data_received(b"")
