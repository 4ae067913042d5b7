"""The interpreter that the packages carry beside this system's own: the daemon on emulated NPUs and GPUs.

One round starts the daemon on each of the two, lets it idle, and reads its cost. The first round of each is
not counted: it warms the disk's cache.
"""

import contextlib
import platform
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from tests.bench.shared import kernel_log, processes
from tests.bench.shared.daemon import PROGRAM, ROOT, running, scratch
from tests.bench.shared.emulated import ACCELERATORS, accelerators
from tests.bench.shared.figures import CannotRun, Figure, median, spread

TITLE = "the package's interpreter beside the system's"
ROUNDS = 5
SETTLE_S = 6.0
IDLE_S = 10.0
MIB = 1024 * 1024
PACKAGED: Final = ROOT / "build" / platform.machine() / "lib/bin"
"""What ./dev package lays out."""


@dataclass(frozen=True, slots=True)
class Round:
    ready_s: float
    serving_s: float
    idle_percent: float
    memory_mib: float


def run() -> Iterator[Figure]:
    packaged = (str(PACKAGED / "python"), "-I", str(PACKAGED / "nodeagent"))
    if not PACKAGED.exists():
        raise CannotRun(f"{PACKAGED} is not there; ./dev package makes it")
    with kernel_log.exclusive():
        rounds = [(_round(packaged), _round(PROGRAM)) for _ in range(ROUNDS + 1)][1:]
    names = ("to READY=1", "to SERVING", "processor when idle, of one core", "memory, without other Pythons")
    units = ("s", "s", "%", "MiB")
    columns = zip(*(zip(astuple(own), astuple(system), strict=True) for own, system in rounds), strict=True)
    for name, unit, pairs in zip(names, units, columns, strict=True):
        own, system = zip(*pairs, strict=True)
        yield Figure(
            name=f"{ACCELERATORS}, {name}",
            value=median(own),
            unit=unit,
            peer=median(system),
            peer_name=f"CPython {platform.python_version()} of the system",
            note=f"{spread(own)}, system {spread(system)}",
        )


def _round(program: tuple[str, ...]) -> Round:
    with contextlib.ExitStack() as life:
        directory: Path = life.enter_context(scratch())
        _, drivers = life.enter_context(accelerators(directory, required=True))
        daemon = life.enter_context(running(directory, drivers=drivers, program=program))
        ready_s, serving_s = daemon.ready(), daemon.serving()
        time.sleep(SETTLE_S)
        pids = processes.tree(daemon.pid)
        before_ns, begun_s = processes.cpu_ns(pids), time.monotonic()
        time.sleep(IDLE_S)
        spent_ns = processes.cpu_ns(pids) - before_ns
        idle_percent = spent_ns / 1e7 / (time.monotonic() - begun_s)
        return Round(ready_s, serving_s, idle_percent, processes.alone_bytes(pids) / MIB)
