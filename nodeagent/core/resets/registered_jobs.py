"""Jobs that may be ended for a reset: where the configuration says so, those that claimed the faulty chip.

A job on another chip of the group is not among them, nor is any that nobody registered; and a fault that
waits for its chip to be free ends nobody.
"""

from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.jobs import chips
from nodeagent.core.model import Claimed, Held, Holder, JobStage, Level, Reset
from nodeagent.core.resets import asking_faults
from nodeagent.core.state.state import State


def jobs(state: State, reset: Reset, settings: ResetSettings) -> frozenset[str]:
    """The names under which they claimed the chip that asked."""
    asking = asking_faults.asking_conditions(state, reset)
    if not settings.terminate_registered or all(each.level is Level.FREE_RESTART_NPU for each in asking):
        return frozenset()
    claimed = state.get(Claimed, reset.asker_id)
    names = (job for job, _ in claimed.jobs) if claimed is not None else ()
    return frozenset(name for name in names if not _stops_by_itself(state, name))


def _stops_by_itself(state: State, name: str) -> bool:
    """Whether its supervisor is asked to stop it, and has not been given up yet."""
    supervised = [job for job in chips.live(state) if chips.covers(name, job.name)]
    return any(job.policy.in_place and job.stage is not JobStage.LEAVING for job in supervised)


def has(registered: frozenset[str], job: str) -> bool:
    """Whether a process of that job belongs to one: to the job itself, or to a step of it, ``JOB.STEP``."""
    return any(chips.covers(each, job) for each in registered)


def holders(state: State, reset: Reset, settings: ResetSettings) -> tuple[Holder, ...]:
    """The processes of these jobs on any chip of the group, each once."""
    registered = jobs(state, reset, settings)
    held = (state.get(Held, device_id) for device_id in reset.members)
    every = (holder for cell in held if cell is not None for holder in cell.holders)
    return tuple(dict.fromkeys(holder for holder in every if has(registered, holder.job)))
