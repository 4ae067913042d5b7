"""A hundred thousand lines faster than they are read: how many were lost, and how soon that is known.

Once with the reader stopped until the flood is over, where the kernel's own numbers say exactly how many
records were overwritten unread; once with the reader at work all the time.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator

from nodeagent.client import AsyncClient
from tests.bench.shared import kernel_log, processes
from tests.bench.shared.daemon import Daemon, running, scratch
from tests.bench.shared.figures import Figure
from tests.bench.shared.kernel_log import Writer
from tests.bench.shared.subscriber import Subscriber, subscribed

TITLE = "a flood of 100,000 kernel lines"
LINES = 100_000
BUDGET_MS = 100.0
MARK, AFTER_STOPPED, AFTER_LIVE = 300, 301, 302


def run() -> Iterator[Figure]:
    with kernel_log.exclusive() as writer:
        with scratch() as directory, running(directory) as daemon:
            daemon.serving()
            yield from asyncio.run(_behind(daemon, writer))
        with scratch() as directory, running(directory) as daemon:
            daemon.serving()
            yield from asyncio.run(_at_work(daemon, writer))


async def _behind(daemon: Daemon, writer: Writer) -> list[Figure]:
    """The reader has read everything, is stopped, and goes on when the flood is over."""
    device = kernel_log.device_names(1)[0]
    worker = processes.tree(daemon.pid)[1]
    async with subscribed(daemon.socket) as subscriber:
        writer.write(kernel_log.xid_line(device, MARK))
        await subscriber.raised(device, f"XID_{MARK}")
        os.kill(worker, signal.SIGSTOP)
        try:
            read_to = kernel_log.records()[-1].seq
            _flood(writer)
            writer.write(kernel_log.xid_line(device, AFTER_STOPPED))
            oldest = kernel_log.records()[0].seq
        finally:
            go_ns = time.monotonic_ns()
            os.kill(worker, signal.SIGCONT)
        figures = await _arrivals(subscriber, device, AFTER_STOPPED, go_ns, "reader stopped")
        lost = await _reported_lost(subscriber.client)
    overwritten = oldest - read_to - 1
    figures.append(
        Figure(
            name="reader stopped, lost as reported",
            value=lost,
            unit="lines",
            peer=overwritten,
            peer_name="overwritten unread",
        )
    )
    return figures


async def _at_work(daemon: Daemon, writer: Writer) -> list[Figure]:
    device = kernel_log.device_names(1)[0]
    async with subscribed(daemon.socket) as subscriber:
        begun_ns = time.monotonic_ns()
        await asyncio.to_thread(_flood, writer)
        writer.write(kernel_log.xid_line(device, AFTER_LIVE))
        ended_ns = time.monotonic_ns()
        figures = [
            Figure(name="written in", value=(ended_ns - begun_ns) / 1e6, unit="ms"),
            await _fault(subscriber, device, AFTER_LIVE, ended_ns, "reader at work"),
        ]
        figures.append(
            Figure(
                name="reader at work, lost as reported",
                value=await _reported_lost(subscriber.client),
                unit="lines",
            )
        )
    return figures


def _flood(writer: Writer) -> None:
    for number in range(LINES):
        writer.write(f"bench: port {number % 64} flaps, number {number} of a flood")


async def _arrivals(subscriber: Subscriber, device: str, xid: int, since_ns: int, what: str) -> list[Figure]:
    gap_ns, _ = await subscriber.raised("node", "log_gap")
    gap = Figure(
        name=f"{what}, flood's end -> log_gap", value=(gap_ns - since_ns) / 1e6, unit="ms", budget=BUDGET_MS
    )
    return [gap, await _fault(subscriber, device, xid, since_ns, what)]


async def _fault(subscriber: Subscriber, device: str, xid: int, since_ns: int, what: str) -> Figure:
    fault_ns, _ = await subscriber.raised(device, f"XID_{xid}")
    return Figure(
        name=f"{what}, flood's end -> a fault after it",
        value=(fault_ns - since_ns) / 1e6,
        unit="ms",
        budget=BUDGET_MS,
    )


async def _reported_lost(client: AsyncClient) -> int:
    conditions = await client.conditions(["node"])
    return sum(condition.count for condition in conditions if condition.code == "log_gap")
