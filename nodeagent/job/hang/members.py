"""Which processes of a tree are ranks. Launchers count for nothing, all others may only stop the clock.

Ranks are the processes that hold a chip. Where nobody knows who does, or none does yet: those with RANK in
their environment, without the workers that inherited it from a rank; else the launcher's children.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeagent.job.hang.rates import Key, key_of
from nodeagent.job.sample import ProcessSample, Sample

_ENDED: Final = frozenset("ZX")
_STANDS: Final = frozenset("Tt")
"""Stopped, or held by a tracer: proc(5), /proc/pid/stat."""


@dataclass(frozen=True, slots=True)
class Roles:
    ranks: tuple[ProcessSample, ...]
    others: tuple[ProcessSample, ...]
    stopped: tuple[ProcessSample, ...]
    """All stopped processes of the tree."""


class Members:
    def __init__(self) -> None:
        self._held = frozenset[Key]()
        """Who held a chip last. They stay ranks while the daemon cannot say, or a listing is empty once."""

    def of(self, sample: Sample) -> Roles:
        alive = [each for each in sample.processes if each.state not in _ENDED]
        holding = [each for each in alive if each.holds]
        if holding:
            self._held = frozenset(map(key_of, holding))
        else:
            holding = [each for each in alive if key_of(each) in self._held]
        ranks = holding or _by_environment(alive) or _by_launcher(alive)
        pids = {each.pid for each in ranks}
        return Roles(
            tuple(ranks),
            tuple(each for each in alive if each.pid not in pids and not each.launcher),
            tuple(each for each in alive if each.state in _STANDS),
        )


def _by_environment(alive: Iterable[ProcessSample]) -> list[ProcessSample]:
    """A launcher may be a rank: where the whole tree has RANK, it cannot be told from one."""
    having = [each for each in alive if each.has_rank]
    ranks = {each.pid for each in having if not each.launcher}
    return [each for each in having if each.ppid not in ranks]


def _by_launcher(alive: Iterable[ProcessSample]) -> list[ProcessSample]:
    launchers = {each.pid for each in alive if each.launcher}
    children = [each for each in alive if each.ppid in launchers and not each.launcher]
    return children or [each for each in alive if each.launcher]
