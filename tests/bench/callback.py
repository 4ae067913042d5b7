"""From a vendor's library to a gRPC subscriber, the event durable on disk before it is published.

The clock starts just before the emulated library is made to call back; sixteen devices are polled each
second meanwhile. Each lap raises a fault that the daemon does not know yet. The floor is the commit.
"""

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, product

from nodeagent.config.load import load_config
from nodeagent.emulator.node import EmulatedNode
from nodeagent.tables.load import load_catalog
from tests.bench import commits
from tests.bench.shared.daemon import ROOT, Daemon, running, scratch
from tests.bench.shared.emulated import accelerators
from tests.bench.shared.figures import Figure, percentile
from tests.bench.shared.subscriber import Subscriber, subscribed

TITLE = "driver callback -> gRPC subscriber, durable"
DEVICES = 8
ALONE_LAPS = 120
ALONE_PAUSE_S = 0.3
COMPANY_LAPS = 240
COMPANY_PAUSE_S = 0.01
COMMITS = 40
SETTLE_S = 3.0
BUDGET_P99_MS = 10.0
FIRST_XID = 200
"""No Xid of the tables: one whose rules would emit more than it."""

_CODE = re.compile("80[0-9A-F]{6}")

Raise = Callable[[], None]
Lap = tuple[str, str, Raise]
"""Device, code, and what makes the library call back."""


def run() -> Iterator[Figure]:
    with (
        scratch() as directory,
        accelerators(directory, required=True) as (node, drivers),
        running(directory, kmsg=False, drivers=drivers) as daemon,
    ):
        daemon.serving()
        time.sleep(SETTLE_S)
        for vendor, laps in (("NPU", _npu_laps(node)), ("GPU", _gpu_laps(node))):
            yield from _figures(vendor, *asyncio.run(_measure(daemon, laps)))


def _figures(vendor: str, alone_ms: list[float], company_ms: list[float]) -> Iterator[Figure]:
    for what, seen_ms, pause_s in (
        (f"{vendor}, a fault alone", alone_ms, ALONE_PAUSE_S),
        (f"{vendor}, faults in company", company_ms, COMPANY_PAUSE_S),
    ):
        with scratch() as directory:
            commits_ms = asyncio.run(commits.measure(directory, pause_s, COMMITS))
        for percent, budget in ((50, None), (99, BUDGET_P99_MS)):
            yield Figure(
                name=f"{what}, p{percent}",
                value=percentile(seen_ms, percent),
                unit="ms",
                budget=budget,
                peer=percentile(commits_ms, percent),
                peer_name="a commit",
                note=f"({len(seen_ms)} faults)",
            )


async def _measure(daemon: Daemon, laps: Iterator[Lap]) -> tuple[list[float], list[float]]:
    async with subscribed(daemon.socket) as subscriber:
        alone_ms = await _laps(subscriber, islice(laps, ALONE_LAPS), ALONE_PAUSE_S)
        company_ms = await _laps(subscriber, islice(laps, COMPANY_LAPS), COMPANY_PAUSE_S)
    return alone_ms, company_ms


async def _laps(subscriber: Subscriber, laps: Iterator[Lap], pause_s: float) -> list[float]:
    """Milliseconds of each."""
    took_ms = []
    for device, code, call_back in laps:
        # Never in step with the polls, or every fault would meet the same moment of them.
        await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))
        begun_ns = time.monotonic_ns()
        call_back()
        seen_ns, _ = await subscriber.raised(device, code)
        took_ms.append((seen_ns - begun_ns) / 1e6)
    return took_ms


def _npu_laps(node: EmulatedNode) -> Iterator[Lap]:
    for code, number in product(_npu_codes(), range(DEVICES)):
        yield f"npu{number}", code, partial(node.raise_code, f"npu{number}", int(code, 16))


def _npu_codes() -> list[str]:
    """Codes that are emitted as they come: no rule waits for more, or for another one."""
    catalog = load_catalog([ROOT / "fault_codes"], load_config(None, {}).settings()).catalog
    ruled = {code for rules in (catalog.frequency, catalog.duration) for rule in rules for code in rule.codes}
    ruled |= {code for relation in catalog.relation for code in (relation.code, *relation.with_codes)}
    codes = [row.code for row in catalog.rows.values() if "ascend.toml" in row.file]
    return sorted(code for code in codes if _CODE.fullmatch(code) and code not in ruled)


def _gpu_laps(node: EmulatedNode) -> Iterator[Lap]:
    for xid, number in product(range(FIRST_XID, FIRST_XID + 100), range(DEVICES)):
        yield f"gpu{number}", f"XID_{xid}", partial(node.gpus.raise_xid, f"gpu{number}", xid)
