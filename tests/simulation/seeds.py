"""Many seeds: the kept ones first, then the rest, on as many processes as there are cores."""

import logging
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.simulation.run import Result, simulate

KEPT = {
    name: Path(__file__).with_name(f"seeds_{name}.txt") for name in ("rules", "acting", "jobs", "reports")
}
SHOWING = Path(__file__).with_name("seeds_mutations.txt")


def kept_seeds(life: str = "rules") -> list[int]:
    """Those that once found something, oldest first."""
    return [seed for seed, _ in _lines(KEPT[life])]


def shown_by(mutation: str) -> list[int]:
    """The seed that shows a mutation soon, where the first kept one does not; [] for every other."""
    return [seed for seed, name in _lines(SHOWING) if name == mutation]


def _lines(path: Path) -> list[tuple[int, str]]:
    """A line is a number and what it is for; # begins a comment."""
    lines = (line.partition("#")[0].split(maxsplit=1) for line in path.read_text().splitlines())
    return [(int(words[0]), "".join(words[1:]).strip()) for words in lines if words]


def with_kept(first: int, last: int, life: str = "rules") -> list[int]:
    """The kept ones, then those from first to last that are not among them."""
    kept = kept_seeds(life)
    return kept + [seed for seed in range(first, last + 1) if seed not in kept]


def play(seeds: Iterable[int], hours: float, life: str = "rules") -> list[Result]:
    """Each seed by itself; results in the order of the seeds."""
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=quiet) as pool:
        return list(pool.map(partial(simulate, hours=hours, life=life), seeds, chunksize=4))


def quiet() -> None:
    """A restart that finds a difference logs it; the invariants say the same and more."""
    logging.disable(logging.CRITICAL)
