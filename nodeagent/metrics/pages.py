"""The answers of the metrics' server: ``/metrics`` in the format that a request asks for, ``/-/healthy``,
``/-/ready``, and a page that links them.

``http.server`` parses a request and writes its answer, both in memory: connections and their limits are those
of ``nodeagent.metrics.http``. The formats and the choice of gzip are prometheus_client's.
"""

import asyncio
import gzip
import io
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

RENDERING_SHARE: Final = 0.5
"""The most of the time that is spent on it. All requests that wait meanwhile get the next rendering."""

GZIP_LEVEL: Final = 6

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


class MetricsRequest(BaseHTTPRequestHandler):
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


class MetricsPages:
    """The answers. One rendering at a time, for all requests of its format that came before it began."""

    def __init__(self, registry: CollectorRegistry, is_ready: Callable[[], bool]) -> None:
        self._registry = registry
        self._is_ready = is_ready
        self._next: dict[_Format, asyncio.Task[bytes]] = {}
        self._turn = asyncio.Lock()
        self._rested_s = 0.0

    async def answer(self, request: MetricsRequest) -> bytes:
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
