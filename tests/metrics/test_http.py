"""The HTTP server of /metrics: what it answers, and who gives way where too many connect."""

import gzip
import socket
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nodeagent.api.access.sockets import OutletError
from nodeagent.metrics import http
from nodeagent.metrics.http import MAX_CONNECTIONS, MetricsServer

LIMIT_S = 10.0
LINES = 20_000
"""A page larger than what the kernel keeps of a connection."""

SCRAPE = b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"
KEPT = b"GET /metrics HTTP/1.1\r\n\r\n"
HEALTHY = b"GET /-/healthy HTTP/1.1\r\n\r\n"


class Page(Collector):
    """Many lines, that take so long beside their rendering; it counts how often they were asked for."""

    def __init__(self) -> None:
        self.renderings = 0
        self.takes_s = 0.0

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        self.renderings += 1
        time.sleep(self.takes_s)
        lines = GaugeMetricFamily("line", "A line.", labels=["number"])
        for number in range(LINES):
            lines.add_metric([str(number)], number)
        yield lines


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def served(page: Page) -> Iterator[MetricsServer]:
    server = MetricsServer("127.0.0.1:0", page)
    server.start()
    yield server
    server.stop()


def connected(server: MetricsServer, said: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), LIMIT_S)
    connection.sendall(said)
    return connection


def said_by(connection: socket.socket) -> bytes:
    """All that is said until the end."""
    said = b""
    while chunk := connection.recv(65536):
        said += chunk
    return said


def answer(server: MetricsServer, request: bytes) -> bytes:
    """Of a request that is the last of its connection."""
    with connected(server, request) as connection:
        connection.shutdown(socket.SHUT_WR)
        return said_by(connection)


def next_answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of one answer on a connection that is kept."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += chunk_of(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.partition(b"Content-Length: ")[2].split()[0])
    while len(body) < length:
        body += chunk_of(connection)
    assert len(body) == length
    return head, body


def chunk_of(connection: socket.socket) -> bytes:
    chunk = connection.recv(65536)
    assert chunk, "the connection has ended"
    return chunk


def is_scraped(server: MetricsServer) -> bool:
    return f'line{{number="{LINES - 1}"}}'.encode() in answer(server, SCRAPE)


def lines_of(page: bytes) -> list[bytes]:
    """Of the collector; those of the process change."""
    return [line for line in page.splitlines() if line.startswith(b"line{")]


def has_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (SCRAPE, b"HTTP/1.1 200 OK"),
        (b"GET /metrics HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /metrics?name=x HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /metrics HTTP/1.1\r\nAccept: text/plain;version=0.0.4\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /-/healthy HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /-/ready HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"GET /other HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 405 Method Not Allowed"),
        (b"GET /metrics HTTP/9\r\n\r\n", b"HTTP/1.1 400 Bad request version"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad request syntax"),
        (
            b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=x\r\n\r\n",
            b"HTTP/1.1 400 Bad Request",
        ),
    ],
)
def test_each_request_is_answered_with_its_status(
    served: MetricsServer, request_: bytes, status: bytes
) -> None:
    assert answer(served, request_).startswith(status)


def test_a_daemon_that_knows_no_state_yet_is_not_ready(page: Page) -> None:
    server = MetricsServer("127.0.0.1:0", page, lambda: False)
    server.start()
    try:
        assert answer(server, b"GET /-/ready HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 503 ")
        assert answer(server, b"GET /-/healthy HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    finally:
        server.stop()


def test_head_tells_what_get_would(served: MetricsServer) -> None:
    head, _, body = answer(served, b"HEAD /metrics HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"Content-Type: text/plain" in head
    assert int(head.partition(b"Content-Length: ")[2].split()[0]) > LINES
    assert body == b""


def test_a_scraper_that_accepts_gzip_gets_the_same_page_compressed(served: MetricsServer) -> None:
    request = b"GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n"

    head, _, body = answer(served, request).partition(b"\r\n\r\n")
    plain_head, _, plain = answer(served, SCRAPE).partition(b"\r\n\r\n")

    assert b"Content-Encoding: gzip" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"Content-Encoding" not in plain_head
    assert lines_of(gzip.decompress(body)) == lines_of(plain)


def test_a_connection_is_kept_for_the_next_request(served: MetricsServer) -> None:
    with connected(served) as connection:
        for _ in range(3):
            connection.sendall(KEPT)
            head, body = next_answer(connection)
            assert b"Connection: keep-alive" in head
            assert len(lines_of(body)) == LINES


def test_requests_that_come_at_once_are_answered_in_order(served: MetricsServer) -> None:
    with connected(served, HEALTHY * 2 + b"GET /other HTTP/1.1\r\n\r\n") as connection:
        connection.shutdown(socket.SHUT_WR)
        assert [line for line in said_by(connection).splitlines() if line.startswith(b"HTTP/")] == [
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 404 Not Found",
        ]


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /-/healthy HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /-/healthy HTTP/1.0\r\n\r\n",
        b"GET /-/healthy HTTP/1.1\r\nContent-Length: 40\r\n\r\n",
        b"GET /-/healthy HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
    ids=["asked", "old", "body", "chunks", "nonsense"],
)
def test_a_connection_ends_where_the_next_request_is_unwanted_or_cannot_be_found(
    served: MetricsServer, request_: bytes
) -> None:
    with connected(served, request_ + HEALTHY) as connection:
        said = said_by(connection)
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in said


def test_an_idle_connection_ends_after_its_time(
    served: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "IDLE_LIMIT_S", 0.2)
    with connected(served, HEALTHY) as connection:
        assert next_answer(connection)[0].startswith(b"HTTP/1.1 200 ")
        assert has_ended(connection)


def test_idle_connections_give_way_to_a_scrape_and_to_one_that_is_being_sent(
    served: MetricsServer,
) -> None:
    idle = []
    with connected(served, SCRAPE[:10]) as begun:
        for _ in range(2 * MAX_CONNECTIONS):
            idle.append(connected(served, HEALTHY))
            next_answer(idle[-1])
        assert is_scraped(served)
        assert has_ended(idle[0])
        begun.sendall(SCRAPE[10:])
        assert len(lines_of(said_by(begun))) == LINES
    for connection in idle:
        connection.close()


def test_who_sends_half_a_request_gives_way_to_a_scrape(served: MetricsServer) -> None:
    slow = [connected(served, SCRAPE[:10]) for _ in range(2 * MAX_CONNECTIONS)]
    assert is_scraped(served)
    assert has_ended(slow[0])
    for connection in slow:
        connection.close()


def test_who_does_not_take_the_answer_gives_way_to_a_scrape(served: MetricsServer) -> None:
    deaf = []
    for _ in range(2 * MAX_CONNECTIONS):
        deaf.append(socket.socket())
        deaf[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf[-1].connect(("127.0.0.1", served.port))
        deaf[-1].sendall(SCRAPE)
    assert is_scraped(served)
    for connection in deaf:
        connection.close()


def test_a_whole_request_has_one_time_however_it_comes(
    served: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "REQUEST_LIMIT_S", 0.2)
    with connected(served, SCRAPE[:10]) as slow:
        assert trickle(slow) == b""


def trickle(connection: socket.socket) -> bytes:
    """A byte now and then, so that it never looks idle, until the other side has enough."""
    connection.settimeout(0.02)
    for _ in range(int(LIMIT_S / 0.02)):
        try:
            connection.sendall(b" ")
            return connection.recv(1)
        except TimeoutError:
            continue
        except OSError:
            return b""
    raise AssertionError("it never had enough")


def test_all_who_wait_are_answered_with_one_rendering(served: MetricsServer, page: Page) -> None:
    page.takes_s = 0.5
    assert is_scraped(served)
    with ThreadPoolExecutor() as scrapers:
        assert all(scrapers.map(is_scraped, [served] * 4))
    assert page.renderings == 2


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:port", "metrics.listen: cannot listen on 127.0.0.1:port"),
        ("127.0.0.1:99999", "metrics.listen: cannot listen on 127.0.0.1:99999"),
        ("192.0.2.1:9108", 'Cannot assign requested address; choose another, or "" for none'),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_told(page: Page, address: str, words: str) -> None:
    with pytest.raises(OutletError) as failed:
        MetricsServer(address, page).start()
    assert words in str(failed.value)


def test_an_address_that_is_taken_is_told(served: MetricsServer, page: Page) -> None:
    with pytest.raises(OutletError) as failed:
        MetricsServer(f"127.0.0.1:{served.port}", page).start()
    assert "Address already in use" in str(failed.value)
