"""From a line in the kernel log to a gRPC subscriber, the event durable on disk before it is published.

Each line is one that the daemon never saw and raises one event. The floor is what lies not in its hands:
the kernel wakes whoever waits at its next tick, which a bare reader of the same log shows, and the disk
takes its time for a commit, here measured at the same pace.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench import commits
from tests.bench.shared import kernel_log
from tests.bench.shared.daemon import Daemon, running, scratch
from tests.bench.shared.figures import Figure, percentile
from tests.bench.shared.kernel_log import BareReader, Writer
from tests.bench.shared.subscriber import Subscriber, subscribed

TITLE = "kernel line -> gRPC subscriber, durable"
DEVICES = 16
ALONE_LINES = 120
ALONE_PAUSE_S = 0.3
"""Longer than the reader keeps looking by itself after a fault: each line meets a reader that sleeps."""

COMPANY_LINES = 240
COMPANY_PAUSE_S = 0.01
COMMITS = 40
FIRST_XID = 200
BUDGET_P50_MS = 3.0
BUDGET_P99_MS = 8.0


@dataclass(frozen=True, slots=True)
class Lap:
    """Milliseconds from the write to the subscriber, and to the bare reader."""

    seen_ms: float
    woken_ms: float


def run() -> Iterator[Figure]:
    with kernel_log.exclusive() as writer, scratch() as directory, running(directory) as daemon:
        daemon.serving()
        alone, company = asyncio.run(_measure(daemon, writer))
    yield from _figures("a line alone", alone, ALONE_PAUSE_S)
    yield from _figures("lines in company", company, COMPANY_PAUSE_S)


def _figures(what: str, laps: list[Lap], pause_s: float) -> Iterator[Figure]:
    seen_ms = [lap.seen_ms for lap in laps]
    woken = [lap.woken_ms for lap in laps]
    with scratch() as directory:
        commits_ms = asyncio.run(commits.measure(directory, pause_s, COMMITS))
    for percent, budget in ((50, BUDGET_P50_MS), (99, BUDGET_P99_MS)):
        yield Figure(
            name=f"{what}, p{percent}",
            value=percentile(seen_ms, percent),
            unit="ms",
            budget=budget,
            peer=percentile(woken, percent) + percentile(commits_ms, percent),
            peer_name="wake-up and commit",
            note=f"({len(laps)} lines)",
        )
    for name, values in (("the kernel's wake-up", woken), ("a commit", commits_ms)):
        yield Figure(name=f"{what}, of that {name}, p50", value=percentile(values, 50), unit="ms")


async def _measure(daemon: Daemon, writer: Writer) -> tuple[list[Lap], list[Lap]]:
    names = kernel_log.device_names(DEVICES)
    faults = [
        (names[number % DEVICES], FIRST_XID + number // DEVICES)
        for number in range(ALONE_LINES + COMPANY_LINES)
    ]
    async with subscribed(daemon.socket) as subscriber:
        with BareReader() as reader:
            alone = await _laps(subscriber, reader, writer, faults[:ALONE_LINES], ALONE_PAUSE_S)
            company = await _laps(subscriber, reader, writer, faults[ALONE_LINES:], COMPANY_PAUSE_S)
    return alone, company


async def _laps(
    subscriber: Subscriber,
    reader: BareReader,
    writer: Writer,
    faults: list[tuple[str, int]],
    pause_s: float,
) -> list[Lap]:
    written: list[tuple[str, int, int]] = []
    for device, xid in faults:
        # Never in step with the kernel's tick, or every line would meet the same moment of it.
        await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))
        line = kernel_log.xid_line(device, xid)
        begun_ns = time.monotonic_ns()
        writer.write(line)
        seen_ns, _ = await subscriber.raised(device, f"XID_{xid}")
        written.append((line, begun_ns, seen_ns))
    await asyncio.sleep(0.1)  # for the bare reader, whom nobody waits for
    return [
        Lap((seen_ns - begun_ns) / 1e6, (reader.woken_ns[line] - begun_ns) / 1e6)
        for line, begun_ns, seen_ns in written
    ]
