"""Receivers that behave as bad ones do, for each form, on loopback. Each keeps what it has taken, in order.

What they read is read by the code of others where there is any: the messages of OTLP, the signatures of
webhooks.
"""

import gzip
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from standardwebhooks.webhooks import Webhook


class Mood(Enum):
    """What a receiver does with one request, or one connection."""

    TAKES = auto()
    FAILS = auto()
    """It takes nothing, and reports an error."""

    FORGETS = auto()
    """It takes all, and reports an error."""

    HANGS_UP = auto()
    """It takes nothing, and the connection ends."""

    IS_SLOW = auto()
    """It takes all, after a while."""


Moods = Callable[[], Mood]
SLOW_S = 0.2


def always() -> Mood:
    return Mood.TAKES


def one_in_three() -> Moods:
    """Every third does not succeed, each time in another way."""
    count = 0
    bad = (Mood.FAILS, Mood.FORGETS, Mood.HANGS_UP)

    def mood() -> Mood:
        nonlocal count
        count += 1
        return bad[count // 3 % 3] if count % 3 == 0 else Mood.TAKES

    return mood


class Receiver:
    """``taken`` are the ids of records as they came; ``url`` is what to export to."""

    def __init__(self, mood: Moods) -> None:
        self.mood = mood
        self.taken: list[str] = []
        self.records: list[Any] = []
        self.requests = 0
        self.url = ""

    def take(self, records: list[tuple[str, Any]]) -> None:
        self.taken += [key for key, _ in records]
        self.records += [record for _, record in records]


class HttpReceiver(Receiver):
    """``status`` replaces the answer of a request where it is set; ``headers`` are those of the last one."""

    def __init__(self, mood: Moods) -> None:
        super().__init__(mood)
        self.status: Callable[[bytes], int | None] = lambda _body: None
        self.retry_after = ""
        self.headers: dict[str, str] = {}
        self.path = ""

    def read(self, headers: dict[str, str], body: bytes) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def answer(self) -> bytes:
        return b""

    def served(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.requests += 1
        self.headers, self.path = dict(handler.headers), handler.path
        mood, forced = self.mood(), self.status(body)
        if mood is Mood.HANGS_UP:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if mood is Mood.IS_SLOW:
            time.sleep(SLOW_S)
        if mood is not Mood.FAILS and forced in (None, 200):
            self.take(self.read(self.headers, body))
        status = forced or (503 if mood in (Mood.FAILS, Mood.FORGETS) else 200)
        answer = self.answer() if status == 200 else b""
        handler.send_response(status)
        if self.retry_after:
            handler.send_header("Retry-After", self.retry_after)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)


class CloudEventsReceiver(HttpReceiver):
    def __init__(self, mood: Moods, secret: str) -> None:
        super().__init__(mood)
        self.secret = secret

    def read(self, headers: dict[str, str], body: bytes) -> list[tuple[str, Any]]:
        if self.secret:
            Webhook(self.secret).verify(body, headers)
        sent = json.loads(body)
        is_batch = headers["Content-Type"].startswith("application/cloudevents-batch+json")
        return [(event["id"], event) for event in (sent if is_batch else [sent])]


class OtlpReceiver(HttpReceiver):
    def read(self, headers: dict[str, str], body: bytes) -> list[tuple[str, Any]]:
        plain = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        request = ExportLogsServiceRequest.FromString(plain)
        return [
            (_uid(record), (resource.resource, record))
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]


def _uid(record: Any) -> str:
    values = {each.key: each.value.string_value for each in record.attributes}
    return str(values["log.record.uid"])


@contextmanager
def http(receiver: HttpReceiver) -> Iterator[HttpReceiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            with suppress(ConnectionError):
                receiver.served(self)

        def log_message(self, *_arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield receiver
        finally:
            server.shutdown()


_RESET = struct.pack("ii", 1, 0)
_OWN_ID = re.compile(rb' id="([^"]+)"')


def messages(stream: bytes) -> list[bytes]:
    """Those that are complete, by their counts of octets."""
    found = []
    while match := re.match(rb"([0-9]+) ", stream):
        end = match.end() + int(match[1])
        if end > len(stream):
            break
        found.append(stream[match.end() : end])
        stream = stream[end:]
    return found


class SyslogReceiver(Receiver):
    def serve(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    self.served(connection)

    def served(self, connection: socket.socket) -> None:
        self.requests += 1
        mood = self.mood()
        if mood is Mood.FAILS:
            connection.recv(100)  # and the rest is lost
            return
        if mood is Mood.HANGS_UP:
            return
        if mood is Mood.IS_SLOW:
            time.sleep(SLOW_S)
        read = b""
        while chunk := connection.recv(65536):
            read += chunk
        self.take([(_own_id(each), each) for each in messages(read)])
        if mood is Mood.FORGETS:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _own_id(text: bytes) -> str:
    match = _OWN_ID.search(text)
    assert match is not None, text
    return match[1].decode()


@contextmanager
def syslog(receiver: SyslogReceiver) -> Iterator[SyslogReceiver]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver.url = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        threading.Thread(target=receiver.serve, args=(listening,), daemon=True).start()
        yield receiver
        listening.shutdown(socket.SHUT_RDWR)
