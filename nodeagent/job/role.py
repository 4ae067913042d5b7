"""The role of a supervisor: what it may do with its command, and what a signal or another run means. A table.

A supervisor whose policy allows something recovers the job; any other only watches it. Below ``job step`` it
is one of several, and the step's loop decides about reruns. It holds values only: the session acts by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class OnSignal(Enum):
    """What TERM or INT to the supervisor does while the command runs."""

    PASS_EACH = "pass each"
    """The command gets it, as it would without a supervisor, each time."""

    PASS_FIRST = "pass first"
    """The command gets TERM once: Slurm signals each node, and so may the loop on the batch host."""

    STOP = "stop"
    """The run is stopped, with its grace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorRole:
    """``acts``: it may stop the command, keep it waiting and run it again.

    ``signal_ends_job``: TERM or INT means that the scheduler ends the job, whatever else is known. In a step
    it may only mean that another node has failed: what this node knows itself decides first.
    ``reruns_together``: the command runs again on all nodes of a step at once, so the supervisor leaves for
    it. ``counts_placements``: a placement that is used up is counted here, not by the loop of the step.
    """

    acts: bool
    on_signal: OnSignal
    signal_ends_job: bool = True
    reruns_together: bool = False
    counts_placements: bool = True


WATCHES: Final = SupervisorRole(acts=False, on_signal=OnSignal.PASS_EACH)
RECOVERS: Final = SupervisorRole(acts=True, on_signal=OnSignal.STOP)
WATCHES_IN_STEP: Final = SupervisorRole(
    acts=False,
    on_signal=OnSignal.PASS_FIRST,
    signal_ends_job=False,
    reruns_together=True,
    counts_placements=False,
)
RECOVERS_IN_STEP: Final = SupervisorRole(
    acts=True,
    on_signal=OnSignal.STOP,
    signal_ends_job=False,
    reruns_together=True,
    counts_placements=False,
)

_ROLES: Final[Mapping[tuple[bool, bool], SupervisorRole]] = {
    (False, False): WATCHES,
    (True, False): RECOVERS,
    (False, True): WATCHES_IN_STEP,
    (True, True): RECOVERS_IN_STEP,
}


def role_of(*, acts: bool, in_step: bool) -> SupervisorRole:
    """``acts``: the policy allows something. ``in_step``: it is one supervisor of a step of several nodes."""
    return _ROLES[acts, in_step]
