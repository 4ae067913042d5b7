"""What the daemon costs while nothing happens: time on the processor and memory of its whole process tree.

First with the kernel log alone, then with emulated NPUs and GPUs polled each second by the real drivers.
"""

import time
from collections.abc import Iterator

from tests.bench.shared import kernel_log, processes
from tests.bench.shared.daemon import running, scratch
from tests.bench.shared.emulated import ACCELERATORS, accelerators
from tests.bench.shared.figures import Figure, median, spread

TITLE = "idle"
SETTLE_S = 6.0
ROUND_S = 12.0
ROUNDS = 5
BUDGET_PERCENT = 1.0
BUDGET_MIB = 120.0
MIB = 1024 * 1024


def run() -> Iterator[Figure]:
    yield from _cost("kernel log alone", "")
    with scratch() as directory, accelerators(directory) as (_, drivers):
        yield from _cost(ACCELERATORS, drivers)


def _cost(sources: str, drivers: str) -> Iterator[Figure]:
    with kernel_log.exclusive(), scratch() as directory, running(directory, drivers=drivers) as daemon:
        daemon.ready()
        time.sleep(SETTLE_S)
        pids = processes.tree(daemon.pid)
        rounds = [_percents(pids) for _ in range(ROUNDS)]
        alone, pss = processes.alone_bytes(pids) / MIB, processes.pss_bytes(pids) / MIB
        names = [processes.name(pid) for pid in pids]
        each = ", ".join(
            f"{name} {processes.alone_bytes([pid]) / MIB:.0f}" for name, pid in zip(names, pids, strict=True)
        )
    percents = [sum(percents) for percents in rounds]
    typical = ", ".join(
        f"{name} {median(of_it):.2f}" for name, of_it in zip(names, zip(*rounds, strict=True), strict=True)
    )
    yield Figure(
        name=f"{sources}: processor, of one core",
        value=median(percents),
        unit="%",
        budget=BUDGET_PERCENT,
        note=f"{spread(percents)} {typical}",
    )
    yield Figure(
        name=f"{sources}: memory, as on a machine without other Pythons",
        value=alone,
        unit="MiB",
        budget=BUDGET_MIB,
        note=f"({each})",
    )
    yield Figure(name=f"{sources}: memory, PSS as it is now", value=pss, unit="MiB", budget=BUDGET_MIB)


def _percents(pids: list[int]) -> list[float]:
    """Of each process, for a round."""
    begun_s, before = time.monotonic(), [processes.cpu_ns([pid]) for pid in pids]
    time.sleep(ROUND_S)
    after, took_s = [processes.cpu_ns([pid]) for pid in pids], time.monotonic() - begun_s
    return [(now_ns - then_ns) / 1e7 / took_s for then_ns, now_ns in zip(before, after, strict=True)]
