"""Serves ``/metrics`` over HTTP from a thread and a loop of its own, also while the daemon's loop is stuck.

It also serves ``/-/healthy``, ``/-/ready`` and a page that links them. A connection is kept for the next
request. A client that sends or reads slowly has one short time for each request. Where there is no place for
a connection, an idle or a slow one ends: connecting alone never keeps a scrape out. The formats and the
choice of gzip are prometheus_client's. Its own server is not used: it starts a thread for each connection,
keeps none, and bounds neither their number, nor their time, nor the size of a request.
"""

import asyncio
import gzip
import io
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum, auto
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from nodeagent.api.access.sockets import AddressError, listen_at

MAX_CONNECTIONS: Final = 64
MAX_HEAD_BYTES: Final = 16 * 1024
REQUEST_LIMIT_S: Final = 5.0
"""From the connection, or the first byte of a later request, to the last byte that is sent."""

IDLE_LIMIT_S: Final = 330.0
"""How long a connection is kept for the next request. Prometheus keeps it for five minutes
(``idleConnTimeout`` in config/http_config.go of prometheus/common): it is the one to end it, so that no
request meets a connection that is just being closed.
"""

RENDERING_SHARE: Final = 0.5
"""The most of the time that is spent on it. All requests that wait meanwhile get the next rendering."""

GZIP_LEVEL: Final = 6

_END_OF_HEAD: Final = b"\r\n\r\n"
_METHODS: Final = ("GET", "HEAD")
_OF_A_BODY: Final = ("Content-Length", "Transfer-Encoding")
_TEXT: Final = "text/plain; charset=utf-8"
_ELSEWHERE: Final = b"only /metrics, /-/healthy and /-/ready are served here\n"
_LANDING: Final = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nodeagent</title></head>
<body><h1>nodeagent</h1><ul>
<li><a href="/metrics">/metrics</a>: for Prometheus</li>
<li><a href="/-/healthy">/-/healthy</a>: 200 while the process answers</li>
<li><a href="/-/ready">/-/ready</a>: 200 once the daemon knows the state of the node, else 503</li>
</ul></body></html>
"""


_log = logging.getLogger(__name__)


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
            connections = _Connections(_Pages(self._registry, self._is_ready))
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

    def __init__(self, pages: "_Pages") -> None:
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
            self._answering = asyncio.create_task(self._answer(self._transport, _Request(head + end)))

    async def _answer(self, transport: asyncio.Transport, request: "_Request") -> None:
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


class _Request(BaseHTTPRequestHandler):
    """A complete request. http.server parses it, and writes its answer into memory. ``is_last``: the
    connection ends after it, because the client wants so, or sends what is not read here: a body.
    """

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"
    server_version = "nodeagent"
    sys_version = ""

    def __init__(self, head: bytes) -> None:
        self.client_address = ("", 0)
        self.rfile = io.BytesIO(head)
        self.wfile = self._written = io.BytesIO()
        self.raw_requestline = self.rfile.readline()
        self.is_sound = self.parse_request()
        has_body = self.is_sound and any(name in self.headers for name in _OF_A_BODY)
        self.is_last = self.close_connection or has_body

    def answer(self, status: HTTPStatus, content_type: str, body: bytes, is_gzip: bool = False) -> bytes:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        if is_gzip:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close" if self.is_last else "keep-alive")
        self.end_headers()
        if self.command != "HEAD":
            self._written.write(body)
        return self._written.getvalue()

    def refused(self, status: HTTPStatus | None = None) -> bytes:
        """Without a status: the answer of http.server to a request that it could not parse. It ends the
        connection.
        """
        self.is_last = True
        if status is not None:
            self.send_error(status)
        return self._written.getvalue()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 # http.server's name
        _log.debug("metrics: " + format, *arguments)


class _Pages:
    """The answers. One rendering at a time, for all requests of its format that came before it began."""

    def __init__(self, registry: CollectorRegistry, is_ready: Callable[[], bool]) -> None:
        self._registry = registry
        self._is_ready = is_ready
        self._next: dict[_Format, asyncio.Task[bytes]] = {}
        self._turn = asyncio.Lock()
        self._rested_s = 0.0

    async def answer(self, request: _Request) -> bytes:
        if not request.is_sound:
            return request.refused()
        if request.command not in _METHODS:
            return request.refused(HTTPStatus.METHOD_NOT_ALLOWED)
        path = request.path.partition("?")[0]
        if path != "/metrics":
            return request.answer(*self._other(path))
        try:
            wanted = _Format.of(request.headers.get("Accept", ""), request.headers.get("Accept-Encoding", ""))
        except (TypeError, ValueError):
            return request.refused(HTTPStatus.BAD_REQUEST)
        try:
            body = await self._rendered(wanted)
        except Exception:  # noqa: BLE001 # whatever a collector raises, the next scrape is answered
            _log.exception("metrics: a scrape failed")
            return request.refused(HTTPStatus.INTERNAL_SERVER_ERROR)
        return request.answer(HTTPStatus.OK, wanted.content_type, body, wanted.is_gzip)

    def _other(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Status, type and body of a page that is not rendered."""
        is_ready = path == "/-/ready" and self._is_ready()
        pages = {
            "/": (HTTPStatus.OK, "text/html; charset=utf-8", _LANDING),
            "/-/healthy": (HTTPStatus.OK, _TEXT, b"healthy\n"),
            "/-/ready": (
                (HTTPStatus.OK, _TEXT, b"ready\n")
                if is_ready
                else (HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"the daemon is still starting\n")
            ),
        }
        return pages.get(path, (HTTPStatus.NOT_FOUND, _TEXT, _ELSEWHERE))

    async def _rendered(self, wanted: "_Format") -> bytes:
        if wanted not in self._next:
            self._next[wanted] = asyncio.create_task(self._render(wanted))
        return await self._next[wanted]

    async def _render(self, wanted: "_Format") -> bytes:
        async with self._turn:
            await asyncio.sleep(self._rested_s - time.monotonic())
            # A request that comes from here on gets values from here on.
            del self._next[wanted]
            begun_s = time.monotonic()
            try:
                return wanted.encoded(self._registry)
            finally:
                self._rested_s = begun_s + (time.monotonic() - begun_s) / RENDERING_SHARE


@dataclass(frozen=True, slots=True)
class _Format:
    content_type: str
    encode: Callable[[Collector], bytes] = field(compare=False)
    is_gzip: bool

    @classmethod
    def of(cls, accept: str, accept_encoding: str) -> Self:
        """The format that a request asks for. Raises TypeError or ValueError where it names a bad version."""
        encode, content_type = choose_encoder(accept)
        return cls(content_type, encode, gzip_accepted(accept_encoding))

    def encoded(self, registry: CollectorRegistry) -> bytes:
        body = self.encode(registry)
        return gzip.compress(body, GZIP_LEVEL) if self.is_gzip else body
