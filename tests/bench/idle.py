"""What the daemon costs while nothing happens: time on the processor and memory of its whole process tree.

First with the kernel log alone, then with emulated NPUs and GPUs polled each second by the real drivers.
"""

import time
from collections.abc import Iterator

from nodeagent.emulator.node import EmulatedNode
from tests.bench import kernel_log, processes
from tests.bench.daemon import running, scratch
from tests.bench.figures import Figure, median, spread

TITLE = "idle"
ACCELERATORS = "8x910B+8xH100"
SETTLE_S = 6.0
ROUND_S = 4.0
ROUNDS = 5
BUDGET_PERCENT = 1.0
BUDGET_MIB = 120.0
MIB = 1024 * 1024


_DRIVERS = """
[drivers.ascend]
library = "{node.dcmi}"
sysfs = "{node.sysfs}"

[drivers.nvidia]
library = "{node.nvml}"
sysfs = "{node.sysfs}"

[drivers.unifiedbus]
library = "{node.lingqu}"
sysfs = "{node.sysfs}"
"""


def run() -> Iterator[Figure]:
    yield from _cost("kernel log alone", "")
    with scratch() as directory, EmulatedNode.create(directory / "node", ACCELERATORS) as node:
        yield from _cost(ACCELERATORS, _DRIVERS.format(node=node))


def _cost(sources: str, drivers: str) -> Iterator[Figure]:
    with kernel_log.exclusive(), scratch() as directory, running(directory, drivers=drivers) as daemon:
        daemon.ready()
        time.sleep(SETTLE_S)
        pids = processes.tree(daemon.pid)
        percents = [_percent(pids) for _ in range(ROUNDS)]
        alone, pss = processes.alone_bytes(pids) / MIB, processes.pss_bytes(pids) / MIB
        each = ", ".join(f"{processes.alone_bytes([pid]) / MIB:.0f}" for pid in pids)
    yield Figure(
        name=f"{sources}: processor, of one core",
        value=median(percents),
        unit="%",
        budget=BUDGET_PERCENT,
        note=spread(percents),
    )
    yield Figure(
        name=f"{sources}: memory, as on a machine without other Pythons",
        value=alone,
        unit="MiB",
        budget=BUDGET_MIB,
        note=f"({len(pids)} processes: {each})",
    )
    yield Figure(name=f"{sources}: memory, PSS as it is now", value=pss, unit="MiB", budget=BUDGET_MIB)


def _percent(pids: list[int]) -> float:
    begun_s, before_ns = time.monotonic(), processes.cpu_ns(pids)
    time.sleep(ROUND_S)
    return (processes.cpu_ns(pids) - before_ns) / 1e7 / (time.monotonic() - begun_s)
