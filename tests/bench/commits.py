"""The store alone: how long one event and its input take until they are on the disk."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from nodeagent.core.model import Assertion, Signal
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from tests.bench.daemon import scratch
from tests.bench.figures import Figure, percentile
from tests.outlets.samples import event

TITLE = "store commits, one event and its input each"
COMMITS = 600
PAUSES_S = {"one after the other": 0.0, "5 ms apart": 0.005}


def run() -> Iterator[Figure]:
    for what, pause_s in PAUSES_S.items():
        with scratch() as directory:
            took_ms = asyncio.run(_commit(directory, pause_s))
        yield Figure(
            name=f"{what}, p50", value=percentile(took_ms, 50), unit="ms", note=f"({COMMITS} commits)"
        )
        yield Figure(name=f"{what}, p99", value=percentile(took_ms, 99), unit="ms")


async def _commit(directory: Path, pause_s: float) -> list[float]:
    ledger = Ledger(directory, "bench")
    await ledger.open()
    took_ms = []
    for number in range(COMMITS):
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
