"""Many seeds: the kept ones first, then the rest, on as many processes as there are cores."""

import logging
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

from tests.simulation.run import Result, simulate

KEPT = {
    name: Path(__file__).with_name(f"seeds_{name}.txt")
    for name in ("rules", "acting", "jobs", "reports", "common")
}
SHOWING = Path(__file__).with_name("seeds_mutations.txt")

PLAYED = {
    "rules": (9, 24.0),
    "acting": (12, 100.0),
    "jobs": (4, 6.0),
    "reports": (4, 24.0),
    "common": (4, 24.0),
}
"""The tests of a life play the kept seeds and those up to this one, each for so many hours. So many, because
every mutation breaks an invariant on one of them, and all that a life must show is seen; more show no more.
``python -m tests.simulation`` plays any number.
"""


def kept_seeds(life: str = "rules") -> list[int]:
    """Those that once found something, oldest first."""
    return [seed for seed, _ in _lines(KEPT[life])]


def shown_by(mutation: str) -> list[int]:
    """The seed that shows a mutation soonest, where the first kept one does not; [] for every other."""
    return [seed for seed, name in _lines(SHOWING) if name == mutation]


def _lines(path: Path) -> list[tuple[int, str]]:
    """A line is a number and what it is for; # begins a comment."""
    lines = (line.partition("#")[0].split(maxsplit=1) for line in path.read_text().splitlines())
    return [(int(words[0]), "".join(words[1:]).strip()) for words in lines if words]


def with_kept(first: int, last: int, life: str = "rules") -> list[int]:
    """The kept ones, then those from first to last that are not among them."""
    kept = kept_seeds(life)
    return kept + [seed for seed in range(first, last + 1) if seed not in kept]


def played(life: str) -> list[int]:
    return with_kept(1, PLAYED[life][0], life)


class Players:
    """Processes that each play the seeds that they are given, one after another. Texts have other hashes in
    each: its sets are in another order.
    """

    def __init__(self, executors: list[ProcessPoolExecutor]) -> None:
        self._executors = executors
        self._turns = cycle(executors)

    def play(self, seed: int, hours: float, life: str) -> Future[Result]:
        return next(self._turns).submit(simulate, seed, hours, life=life)

    def play_in_each(self, seed: int, hours: float, life: str) -> list[Future[Result]]:
        return [each.submit(simulate, seed, hours, life=life) for each in self._executors]


@contextmanager
def players(count: int) -> Iterator[Players]:
    with ExitStack() as stack:
        yield Players([stack.enter_context(_player(hash_seed)) for hash_seed in range(1, count + 1)])


def _player(hash_seed: int) -> ProcessPoolExecutor:
    executor = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=quiet)
    with patch.dict(os.environ, PYTHONHASHSEED=str(hash_seed)):
        executor.submit(os.getpid)  # the process starts with its first task
    return executor


def play(seeds: Iterable[int], hours: float, life: str = "rules") -> list[Result]:
    """Each seed by itself; results in the order of the seeds."""
    with players(os.cpu_count() or 1) as all_of_them:
        played = [all_of_them.play(seed, hours, life) for seed in seeds]
        return [each.result() for each in played]


def quiet() -> None:
    """A restart that finds a difference logs it; the invariants say the same and more."""
    logging.disable(logging.CRITICAL)
