"""From exec to ready: to READY=1, which the service manager waits for, and to gRPC health SERVING, which a
scheduler's probe waits for and which needs the kernel log to have been read once; with accelerators, each
of them polled once as well.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench.shared import kernel_log, stored
from tests.bench.shared.daemon import running, scratch
from tests.bench.shared.emulated import ACCELERATORS, accelerators
from tests.bench.shared.figures import Figure, median, spread

TITLE = "start to ready"
ROUNDS = 5
ROUNDS_WITH_STORE = 3
BUDGET_S = 0.5
BUDGET_WITH_STORE_S = 2.5


def run() -> Iterator[Figure]:
    with kernel_log.exclusive():
        yield from _figures("empty store", None, ROUNDS, BUDGET_S)
        with scratch() as directory, accelerators(directory, required=True) as (_, drivers):
            yield from _figures(f"{ACCELERATORS}, empty store", None, ROUNDS, BUDGET_S, drivers)
        for what, compacted in (("100,000 inputs, compacted", True), ("100,000 inputs to replay", False)):
            with scratch() as made:
                stored.make(made, compacted=compacted)
                yield from _figures(what, made / "state", ROUNDS_WITH_STORE, BUDGET_WITH_STORE_S)


def _figures(
    what: str, state: Path | None, rounds: int, budget_s: float, drivers: str = ""
) -> Iterator[Figure]:
    """One start more than asked for: the first one compiles and warms the disk's cache."""
    starts = [_start(state, drivers) for _ in range(rounds + 1)][1:]
    for name, times in zip(("READY=1", "SERVING"), zip(*starts, strict=True), strict=True):
        yield Figure(
            name=f"{what}, {name}", value=median(times), unit="s", budget=budget_s, note=spread(times)
        )


def _start(state: Path | None, drivers: str) -> tuple[float, float]:
    with scratch() as directory, contextlib.ExitStack() as life:
        if state is not None:
            shutil.copytree(state, directory / "state")
        daemon = life.enter_context(running(directory, drivers=drivers))
        return daemon.ready(), daemon.serving()
