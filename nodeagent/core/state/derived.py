"""Values that are worked out from the cells and kept while they hold. This module only holds them: judging
is done in ``judge`` and ``machines``.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from nodeagent.core.catalog.levels import Stance
from nodeagent.core.model import Handling, JobView, Level, Reason, Verdict
from nodeagent.core.state.cells import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one condition, promotion or hold adds to a verdict; ``level`` None where it has no level.

    ``of_network``: it is a fault of the chip's network ports.
    """

    reason: Reason
    stance: Stance
    level: Level | None = None
    of_network: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    level: Level
    verdict: Verdict
    handling: Handling
    subhealthy: bool
    network_unhealthy: bool
    observed: bool
    reasons: tuple[Reason, ...]


@dataclass(slots=True)
class Uses:
    """The ids of the devices and of the chips that a job uses, by its name and own devices; the live jobs on
    each chip; and which claims are of a supervised job. None: it is to be worked out.
    """

    devices: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    chips: dict[tuple[str, tuple[str, ...]], frozenset[str]] = field(default_factory=dict)
    on_chip: dict[str, list[Key]] | None = None
    supervised: frozenset[str] | None = None


class ClaimedJob(NamedTuple):
    """A job that only claims devices, as it was shown, and what that follows from."""

    kind: str
    devices: tuple[str, ...]
    judged: tuple[Judgement, ...]
    view: JobView


@dataclass(slots=True)
class Derived:
    """``contributions``: what each condition, promotion and hold adds to a verdict. ``judgements``: of each
    device, by its id. ``uses``: which devices jobs use. ``ended_jobs`` and ``claimed_jobs``: how jobs are
    shown.
    """

    contributions: dict[Key, Contribution] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    uses: Uses = field(default_factory=Uses)
    ended_jobs: dict[str, JobView] = field(default_factory=dict)
    claimed_jobs: dict[str, ClaimedJob] = field(default_factory=dict)
