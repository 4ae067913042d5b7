"""The store alone: how long one event and its input take until they are on the disk."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from nodeagent.core.model import Assertion, Signal
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from tests.api.samples import event
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure, percentile

TITLE = "store commits, one event and its input each"
PAUSES = {"one after the other": (0.0, 600), "5 ms apart": (0.005, 600), "0.3 s apart": (0.3, 40)}
"""Seconds between two commits, and how many. Many a disk is slower to answer when it has rested."""


def run() -> Iterator[Figure]:
    for what, (pause_s, count) in PAUSES.items():
        with scratch() as directory:
            took_ms = asyncio.run(measure(directory, pause_s, count))
        yield Figure(name=f"{what}, p50", value=percentile(took_ms, 50), unit="ms", note=f"({count} commits)")
        yield Figure(name=f"{what}, p99", value=percentile(took_ms, 99), unit="ms")


async def measure(directory: Path, pause_s: float, count: int) -> list[float]:
    """Milliseconds of each commit."""
    ledger = Ledger(directory, "bench")
    await ledger.open()
    took_ms = []
    for number in range(count):
        at_ns = time.time_ns()
        signal = Signal(
            source="kmsg",
            device="0000:3b:00.0",
            code=f"XID_{number}",
            assertion=Assertion.ONCE,
            evidence={"line": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."},
        )
        transaction = Transaction(
            inputs=(Stamped(rule_ns=at_ns, wall_ns=at_ns, input=signal),),
            events=((at_ns, event()),),
            engine_now_ns=at_ns,
        )
        begun_ns = time.monotonic_ns()
        await ledger.commit(transaction)
        took_ms.append((time.monotonic_ns() - begun_ns) / 1e6)
        await asyncio.sleep(pause_s)
    await ledger.close()
    return took_ms
