"""Clients of several users take all that the limits allow at once, over every socket, and read nothing of it.

What root orders and asks, a scrape, and a fresh fault on a stream that is read go through all the same.
"""

import asyncio
import contextlib
import json
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodeagent.api.access import limits
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.api import http2
from tests.api.access import limits_sum
from tests.api.access.callers import GET_NODE, LIST_EVENTS, crowd, hoarding
from tests.api.certificates import Authority, Certificate
from tests.api.watching import WATCH
from tests.harness.daemon import Daemon, free_port
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.metrics import is_scraped
from tests.stories.conftest import Follow, Launch

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]

STORED = 300
"""Some more than one response has."""

READERS = range(20_001, 20_005)
HOARDERS = range(20_011, 20_014)
SCANNER, NEWCOMER, IDLER = 20_021, 20_022, 20_023
LATECOMERS = range(20_031, 20_035)
NO_STREAM = (
    f"RESOURCE_EXHAUSTED: there are {limits.STREAMS.total - limits.STREAMS.kept} streams,"
    f" as many as there may be beside the {limits.STREAMS.kept} kept for operators; try again later"
)
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 6)]
HALF_OPEN = 200
SLOW_SCRAPES = 200
OPEN_FILES = 2048
LIMIT_S = 90.0


@dataclass(frozen=True, kw_only=True)
class Target:
    """A daemon with all sockets that there are."""

    daemon: Daemon
    tcp: int
    metrics: str
    authority: Path
    reader: Certificate


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="nodeagent-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@pytest.fixture
def target(launch: Launch, fake_log: FakeKernelLog, place: Path) -> Target:
    authority, tcp, metrics = Authority(place), free_port(), f"127.0.0.1:{free_port()}"
    server = authority.issue("node", alternative="IP:127.0.0.1")
    sections = (
        "[grpc]",
        f'listen = "0.0.0.0:{tcp}"',
        f'tls_cert = "{server.certificate}"',
        f'tls_key = "{server.key}"',
        f'tls_client_ca = "{authority.certificate}"',
        'roles = { "scheduler" = "reader" }',
    )
    daemon = launch(fake_log, place, metrics=metrics, sections=sections)
    reader = authority.issue("scheduler")
    return Target(daemon=daemon, tcp=tcp, metrics=metrics, authority=authority.certificate, reader=reader)


async def test_at_every_limit_at_once_orders_metrics_and_a_fresh_fault_go_through(
    target: Target, follow: Follow, fake_log: FakeKernelLog
) -> None:
    daemon = target.daemon
    subscriber = await follow(daemon)
    for number in range(STORED):
        fake_log.say(f"device{number % 4}", f"LASTING_{number}")
    await subscriber.raised(f"LASTING_{STORED - 1}")
    daemon.socket.chmod(0o666)

    async with everybody(target):
        isolated = await order(daemon, "isolate", "node", "--reason", "all limits")
        standing = json.loads((await daemon.command("status", "--config", daemon.config))[1])
        fake_log.say("fresh", "LASTING_FRESH")
        await subscriber.raised("LASTING_FRESH", "fresh")
        released = await order(daemon, "release", "node", "--reason", "done", "--force")
        await daemon.comes(lambda: scrape_answered(target.metrics), "metrics")
        resident, files = resident_bytes(daemon), open_files(daemon)

    assert (isolated, released) == (0, 0)
    assert [hold["reason"] for hold in standing["holds"]] == ["all limits"]
    assert resident < limits_sum.daemon_bytes()
    assert files < OPEN_FILES
    assert "Traceback" not in daemon.log
    await daemon.comes(lambda: has_room(daemon), "room for a newcomer: the calls of the others are over")


async def scrape_answered(address: str) -> bool:
    """A scrape that had no processor within its limit is cut off, and the next one answered."""
    with contextlib.suppress(ConnectionError):
        return await is_scraped(address)
    return False


async def has_room(daemon: Daemon) -> bool:
    async with crowd(daemon.socket, NEWCOMER, GET_NODE, 3) as answers:
        return answers == (3, 0, "")


async def order(daemon: Daemon, *words: str) -> int:
    """The exit status."""
    async with asyncio.timeout(LIMIT_S):
        status, _ = await daemon.command(*words, "--socket", daemon.folder / "c.sock")
    return status


@asynccontextmanager
async def everybody(target: Target) -> AsyncIterator[None]:
    """All who take what they can get, until the end."""
    daemon = target.daemon
    far_behind, nothing, everything = await requests(daemon)
    async with AsyncExitStack() as crowds:
        await crowds.enter_async_context(half_open(target.tcp))
        await crowds.enter_async_context(certified(target, far_behind))
        for uid in READERS:
            never_read = hoarding(
                *(daemon.socket, uid, WATCH, far_behind), connections=46, calls=2, window=http2.LARGEST_WINDOW
            )
            await crowds.enter_async_context(never_read)
        for uid in HOARDERS:
            not_taken = hoarding(
                *(daemon.socket, uid, LIST_EVENTS, everything), connections=2, calls=64, window=0
            )
            await crowds.enter_async_context(not_taken)
        await crowds.enter_async_context(slow_scrapes(target.metrics))
        await crowds.enter_async_context(remaining_streams(daemon))
        scanning = asyncio.create_task(scan(daemon, nothing))
        await crowds.enter_async_context(root_of_a_container(daemon))
        idle = hoarding(
            daemon.socket, IDLER, GET_NODE, pb.GetNodeRequest(), connections=112, calls=1, window=0
        )
        await crowds.enter_async_context(idle)
        try:
            yield
        finally:
            scanning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await scanning


async def requests(daemon: Daemon) -> tuple[pb.WatchRequest, pb.ListEventsRequest, pb.ListEventsRequest]:
    """To go on after the first event; events that there are none of; as many events as there may be."""
    node = await daemon.asked(lambda client: client.call(pb.GetNodeRequest()))
    return (
        pb.WatchRequest(store_id=node.store_id, after_seq=1),
        pb.ListEventsRequest(limit=1000, filter=pb.EventFilter(devices=["nothing"])),
        pb.ListEventsRequest(limit=1000),
    )


@asynccontextmanager
async def remaining_streams(daemon: Daemon) -> AsyncIterator[None]:
    """Takes streams until none is left: what others asked for may still be on its way, gRPC ends some of more
    than ``limits.PENDING_CALLS`` at once by itself, and on a busy machine connections whose handshake is
    late. One user may not have as many as may be missing then, so the next one goes on.
    """
    users = iter(LATECOMERS)
    user, answer = next(users), ""
    async with AsyncExitStack() as crowds:
        async with asyncio.timeout(LIMIT_S):
            while answer != NO_STREAM:
                _, _, answer = await crowds.enter_async_context(crowd(daemon.socket, user, WATCH, 8))
                if f"uid:{user} has" in answer:
                    user = next(users)
        yield


@asynccontextmanager
async def root_of_a_container(daemon: Daemon) -> AsyncIterator[None]:
    """All that one user may have, by calls that send no request; renewed when the daemon gives them up."""
    asking = asyncio.create_task(renewed(daemon))
    try:
        yield
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


async def renewed(daemon: Daemon) -> None:
    each = limits.STREAMS_ON_CONNECTION
    while True:
        with ExitStack() as peers, contextlib.suppress(ConnectionError):
            for _ in range(limits.OPEN_CALLS.each // each):
                peer = peers.enter_context(http2.connected(daemon.socket))
                for number in range(each):
                    peer.sendall(http2.call(number, GET_NODE, None))
            await asyncio.sleep(1)


async def scan(daemon: Daemon, nothing: pb.ListEventsRequest) -> None:
    """A reader who looks for what there is not, again and again, and more than he may."""
    while True:
        async with crowd(daemon.socket, SCANNER, LIST_EVENTS, 600, nothing):
            pass


@asynccontextmanager
async def certified(target: Target, request: pb.WatchRequest) -> AsyncIterator[None]:
    """A certificate on as many connections as there may be from each address; nothing is read."""
    context = ssl.create_default_context(cafile=str(target.authority))
    context.load_cert_chain(target.reader.certificate, target.reader.key)
    context.set_alpn_protocols(["h2"])

    def connected(address: str) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", target.tcp), LIMIT_S, (address, 0))
        peer = context.wrap_socket(plain, server_hostname="127.0.0.1")
        peer.sendall(http2.opening() + http2.call(0, WATCH, request.SerializeToString()))
        return peer

    each = (limits.TCP_CONNECTIONS.total - limits.TCP_CONNECTIONS.kept) // len(ADDRESSES)
    with ExitStack() as peers:
        for address in ADDRESSES:
            for _ in range(each):
                peers.enter_context(await asyncio.to_thread(connected, address))
        yield


@asynccontextmanager
async def half_open(port: int) -> AsyncIterator[None]:
    """Peers that never begin with TLS."""
    with ExitStack() as peers:
        for _ in range(HALF_OPEN):
            peers.enter_context(await asyncio.to_thread(connection, "127.0.0.1", port))
        yield


@asynccontextmanager
async def slow_scrapes(address: str) -> AsyncIterator[None]:
    host, _, port = address.partition(":")
    with ExitStack() as peers:
        for _ in range(SLOW_SCRAPES):
            peer = peers.enter_context(await asyncio.to_thread(connection, host, int(port)))
            with contextlib.suppress(ConnectionError):
                peer.sendall(b"GET /metrics HTTP/1.1\r\n")
        yield


def connection(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), LIMIT_S)


def resident_bytes(daemon: Daemon) -> int:
    status = Path(f"/proc/{daemon.running.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def open_files(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.running.pid}/fd").iterdir()))
