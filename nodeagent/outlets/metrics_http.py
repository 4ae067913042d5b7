"""Serves ``/metrics`` over HTTP from threads of its own. Nothing else is served; everything is bounded."""

import logging
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from nodeagent.outlets.addresses import AddressError

MAX_REQUESTS = 8
REQUEST_TIMEOUT_S = 10.0

_log = logging.getLogger(__name__)


class MetricsServer:
    """Listens on ``address`` (``host:port``, ``[::1]:port``) from ``start`` to ``stop``."""

    def __init__(self, address: str, collector: Collector) -> None:
        self._address = address
        registry = CollectorRegistry()
        registry.register(collector)
        ProcessCollector(registry=registry)
        self._registry = registry
        self._server: _Server | None = None

    @property
    def port(self) -> int:
        """The port listened on, 0 while it is not."""
        return 0 if self._server is None else int(self._server.server_address[1])

    def start(self) -> None:
        """Raises ``AddressError`` if the address is not free or is none."""
        host, _, port = self._address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), self._registry)
        except (OSError, ValueError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise AddressError(
                f'metrics.listen: cannot listen on {self._address}: {reason}; choose another, or "" for none'
            ) from error
        thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        thread.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.socket.shutdown(
                socket.SHUT_RDWR
            )  # wakes the thread, which else looks up twice a second
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * MAX_REQUESTS

    def __init__(self, address: tuple[str, int], registry: CollectorRegistry) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.registry = registry
        self._places = threading.BoundedSemaphore(MAX_REQUESTS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        _log.info("metrics: a request from %s ended early", client_address[0], exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version = "nodeagent"
    sys_version = ""

    def do_GET(self) -> None:  # http.server's name
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"only /metrics is served here\n")
            return
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        self._answer(HTTPStatus.OK, content_type, encode(self.server.registry))

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 # http.server's name
        _log.debug("metrics: " + format, *arguments)
