"""When a rank counts as slow: a table. Values only.

In synchronous training all ranks make their steps together, because each waits for the slowest. So the time
between two steps shows nothing. What differs is the time that a rank works by itself before it waits: its
score is the median of its peers' times divided by its own, as the relative score of NVIDIA's resiliency
extension (straggler detection; its threshold is 0.75). Peers are ranks that do the same work, as MindCluster
compares the ranks of one parallel group.

A rank that is far behind is reported soon, one that is a little behind only if it lasts: slow computing that
passes takes ten minutes on average (Greyhound, USENIX ATC 2025, section 3).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRule:
    """Of the newest ``steps``, at least ``slow_steps`` have a score of at most ``score``, for ``lasts_s``.

    ``known_even``: only where the rank has kept up before in this run, or its group was reported. Else it
    may do more than its peers by design, as a stage of a pipeline does.
    """

    name: str
    steps: int
    slow_steps: int
    score: float
    lasts_s: float
    known_even: bool
    steady_peers: float
    """This share of the steps of its peers has to be within ``STEADY`` of each other."""


FAR_BEHIND: Final = StepRule(
    name="far behind", steps=8, slow_steps=7, score=0.7, lasts_s=5.0, known_even=False, steady_peers=0.7
)
BEHIND: Final = StepRule(
    name="behind", steps=40, slow_steps=32, score=0.8, lasts_s=300.0, known_even=True, steady_peers=0.0
)
RULES: Final = (FAR_BEHIND, BEHIND)
"""The first that holds is reported."""

LEAST_PEERS: Final = 2
"""Of two ranks, either may be the one that differs."""

WARM_UP_STEPS: Final = 2
"""The first steps of a process compile and choose kernels."""

EVEN_SCORE: Final = 0.85
EVEN_STEPS: Final = 20
"""A rank has kept up if so many steps before had this median. One that was slow keeps up again from there."""

AGREE: Final = 0.25
AGREE_AT_START: Final = 0.15
AGREE_SHARE: Final = 0.6
AGREE_SHARE_AT_START: Final = 0.9
"""This share of the peers has to be within this distance of their median. Where nothing is known of a time
before, more of them, and closer: stages of a pipeline seldom are.
"""

STEADY: Final = 0.7
"""Where the work differs from step to step, a few steps in a row may be slow by chance."""

START_STEPS: Final = 24
"""A rank that never kept up is reported within its first steps, or not at all: it does other work."""

MOVES_STEPS: Final = 200
"""If another rank was slow within so many steps and is not any more, the load moves, and no rank is slow."""

REPEAT_S: Final = 600.0
"""A rank that keeps up again is not reported a second time before."""


# ---------------------------------------------------------------------- by readings of chips alone

CHIP_WINDOW_S: Final = 600.0
CHIP_CLOCK: Final = 0.85
"""The clock of a slow chip, as a share of its peers'. Equal chips at their power limit differ by a few
percent.
"""

CHIP_IN_USE: Final = 5.0
"""Percent; only readings of a chip in use are compared: the clock of an idle chip means nothing."""

CHIP_USED_SHARE: Final = 0.8
"""This share of the readings has to be of a chip in use."""

CHIP_USE_BEHIND: Final = 5.0
"""A slow chip is in use as much as its peers, which wait for it. One that is less in use has less to do."""

CHIP_AGREE: Final = 0.1
LIMITED: Final = frozenset({"application_clocks", "display", "sync_boost"})
"""Reasons of a lower clock that somebody has set, or that are of another GPU: nvmlClocksEventReasons in
nvml.h.
"""

OVERHEATED: Final = frozenset({"hw_thermal", "sw_thermal", "hw_power_brake"})
"""Reasons that are a fault of the GPU, of its cooling or of what feeds it."""
