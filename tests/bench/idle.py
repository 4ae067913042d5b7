"""What the daemon costs while nothing happens: time on the processor and memory of its whole process tree."""

import time
from collections.abc import Iterator

from tests.bench import kernel_log, processes
from tests.bench.daemon import running, scratch
from tests.bench.figures import Figure, median, spread

TITLE = "idle, the kernel log as the only source"
SETTLE_S = 6.0
ROUND_S = 4.0
ROUNDS = 5
BUDGET_PERCENT = 1.0
BUDGET_MIB = 120.0
MIB = 1024 * 1024


def run() -> Iterator[Figure]:
    with kernel_log.exclusive(), scratch() as directory, running(directory) as daemon:
        daemon.ready()
        time.sleep(SETTLE_S)
        pids = processes.tree(daemon.pid)
        percents = [_percent(pids) for _ in range(ROUNDS)]
        alone, pss = processes.alone_bytes(pids) / MIB, processes.pss_bytes(pids) / MIB
        each = ", ".join(f"{processes.alone_bytes([pid]) / MIB:.0f}" for pid in pids)
    yield Figure(
        name="processor, of one core",
        value=median(percents),
        unit="%",
        budget=BUDGET_PERCENT,
        note=spread(percents),
    )
    yield Figure(
        name="memory, as on a machine without other Pythons",
        value=alone,
        unit="MiB",
        budget=BUDGET_MIB,
        note=f"({len(pids)} processes: {each})",
    )
    yield Figure(name="memory, PSS as it is now", value=pss, unit="MiB", budget=BUDGET_MIB)


def _percent(pids: list[int]) -> float:
    begun_s, before_ns = time.monotonic(), processes.cpu_ns(pids)
    time.sleep(ROUND_S)
    return (processes.cpu_ns(pids) - before_ns) / 1e7 / (time.monotonic() - begun_s)
