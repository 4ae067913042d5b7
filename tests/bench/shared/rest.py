"""How much slower this machine computes after a rest: what lies behind most figures of single events.

A virtual processor that rested finds its caches taken by others, and may have lost its clock rate. On a quiet
machine the same computation takes about twice as long then, on a shared one up to ten times, and so does
everything that the daemon does when it is woken. It measures the machine, and nothing of ours.
"""

import time
from collections.abc import Callable
from typing import Final

from tests.bench.shared.figures import median

NUMBERS: Final = tuple(range(20_000))
REST_S: Final = 0.05
RESTS: Final = 30
LAPS: Final = 300


def slowdown() -> float:
    """The median time of a short computation after a rest, by that of the same one again and again."""
    hot_s = median([_timed(_compute) for _ in range(LAPS)])
    return median([_after_a_rest() for _ in range(RESTS)]) / hot_s


def _after_a_rest() -> float:
    time.sleep(REST_S)
    return _timed(_compute)


def _timed(work: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    work()
    return time.perf_counter() - begun_s


def _compute() -> int:
    return sum(NUMBERS[place] * place for place in range(0, len(NUMBERS), 7))
