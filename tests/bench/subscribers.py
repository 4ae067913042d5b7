"""Many subscribers, and much for one: what the outlets deliver, in a process of their own.

The time to a subscriber begins before the commit and ends when the message's bytes are in the
subscriber's process; all subscribers are in one, whose own work is in the figure. The floor is a bare
gRPC server and the same subscribers. A server in Go took half as long as such a bare one.
"""

import asyncio
import contextlib
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc

from nodeagent.api.faults.watch import MAX_BATCH
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.api.watching import WATCH
from tests.bench.shared import bare_server
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure, median, percentile, spread

TITLE = "one event to 100 subscribers, and the stream in batches"
SUBSCRIBERS = 100
EVENTS = 60
PAUSE_S = 0.03
GO_OF_BARE = 2.7 / 6.0
"""p50 to 100 subscribers, Go by grpcio.aio, bare servers on one machine: 2.7 ms by 6 ms."""

BUDGET_OF_GO = 2.5
STREAMED = 100_000
NEWEST = 4_000
ROUNDS = 5
BUDGET_EVENTS_A_SECOND = 500_000.0


def run() -> Iterator[Figure]:
    bare_ms = asyncio.run(_fan_out_bare())
    seen_ms = asyncio.run(_fan_out())
    bare_p50 = percentile(bare_ms, 50)
    yield Figure(
        name=f"commit -> {SUBSCRIBERS} subscribers, p50",
        value=percentile(seen_ms, 50),
        unit="ms",
        budget=BUDGET_OF_GO * GO_OF_BARE * bare_p50,
        peer=bare_p50,
        peer_name="bare server",
        note=f"({EVENTS} events)",
    )
    yield Figure(
        name=f"commit -> {SUBSCRIBERS} subscribers, p99",
        value=percentile(seen_ms, 99),
        unit="ms",
        peer=percentile(bare_ms, 99),
        peer_name="bare server",
    )
    newest, all_stored = asyncio.run(_streamed())
    yield Figure(
        name="batched stream, from memory",
        value=median(newest),
        unit="events/s",
        budget=BUDGET_EVENTS_A_SECOND,
        note=spread(newest),
    )
    yield Figure(
        name="batched stream, from the store",
        value=median(all_stored),
        unit="events/s",
        note=spread(all_stored),
    )


async def _fan_out() -> list[float]:
    with scratch() as directory:
        async with _server("tests.bench.shared.stage_server", directory) as server:
            arrived = await _arrivals(server, directory / "nodeagent.sock", WATCH, "commit 1")
    return [(at_ns - _sent_at_ns(message)) / 1e6 for at_ns, message in arrived]


async def _fan_out_bare() -> list[float]:
    with scratch() as directory:
        socket = directory / "bare.sock"
        async with _server("tests.bench.shared.bare_server", socket) as server:
            arrived = await _arrivals(server, socket, "/".join(("", *bare_server.METHOD)), "send")
    return [(at_ns - int(message.partition(b".")[0])) / 1e6 for at_ns, message in arrived]


def _sent_at_ns(message: bytes) -> int:
    return pb.WatchResponse.FromString(message).batch.events[0].at.ToNanoseconds()


async def _arrivals(server: Process, socket: Path, path: str, order: str) -> list[tuple[int, bytes]]:
    """Each event at each subscriber: wall clock in nanoseconds, message. The first message only opens."""
    arrived: list[tuple[int, bytes]] = []
    opened, complete = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def subscribe() -> None:
        async with _channel(socket) as channel:
            stream = channel.unary_stream(path)(b"")
            await stream.read()
            opened.release()
            while True:
                message = await stream.read()
                arrived.append((time.time_ns(), message))
                if len(arrived) % SUBSCRIBERS == 0:
                    complete.release()

    subscribers = [asyncio.create_task(subscribe()) for _ in range(SUBSCRIBERS)]
    for _ in subscribers:
        await opened.acquire()
    for _ in range(EVENTS):
        await asyncio.sleep(PAUSE_S)
        await _order(server, order)
        await complete.acquire()
    for task in subscribers:
        task.cancel()
    await asyncio.gather(*subscribers, return_exceptions=True)
    return arrived


async def _streamed() -> tuple[list[float], list[float]]:
    """Events a second to one subscriber: the newest, which are in memory, and all there are."""
    with scratch() as directory:
        async with _server("tests.bench.shared.stage_server", directory) as server:
            await _order(server, f"fill {STREAMED}")
            socket = directory / "nodeagent.sock"
            newest = [await _rate(socket, NEWEST) for _ in range(3 * ROUNDS)]
            all_stored = [await _rate(socket, STREAMED) for _ in range(ROUNDS)]
    return newest, all_stored


async def _rate(socket: Path, count: int) -> float:
    """Events a second until the newest ``count`` are there, as bytes."""
    async with _channel(socket) as channel:
        current = await channel.unary_stream(WATCH)(b"").read()
        store_id = pb.WatchResponse.FromString(current).store_id
        request = pb.WatchRequest(store_id=store_id, after_seq=STREAMED - count)
        stream = channel.unary_stream(WATCH)(request.SerializeToString())
        begun_s = time.monotonic()
        messages: list[bytes] = [await stream.read() for _ in range(1 + -(-count // MAX_BATCH))]
        took_s = time.monotonic() - begun_s
        found = sum(len(pb.WatchResponse.FromString(each).batch.events) for each in messages)
    return found / took_s


def _channel(socket: Path) -> grpc.aio.Channel:
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20))
    return grpc.aio.insecure_channel(f"unix:{socket}", options=options)


async def _order(server: Process, order: str) -> None:
    assert server.stdin
    assert server.stdout
    server.stdin.write(f"{order}\n".encode())
    await server.stdout.readline()


@contextlib.asynccontextmanager
async def _server(module: str, where: Path) -> AsyncIterator[Process]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, str(where), stdin=PIPE, stdout=PIPE
    )
    assert server.stdin
    assert server.stdout
    await server.stdout.readline()
    try:
        yield server
    finally:
        server.stdin.close()
        await server.wait()
