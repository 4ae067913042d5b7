"""What a supervised job is called, and whether a hook has claimed a chip for it. Pure.

The name is that of the supervisor's cgroup. A second supervisor of one job adds its pid, and so does one
whose cgroup names no job.
"""

from collections.abc import Callable, Collection
from typing import Final

from nodeagent.core.model import JobStage, JobView, Peer, View
from nodeagent.core.resets import registered_jobs

NO_CGROUP: Final = "pid:"
"""Begins the name of a job that no cgroup names."""


def is_live(job: JobView) -> bool:
    """Whether it is supervised, and has not ended."""
    return job.stage not in (None, JobStage.ENDED)


def live_jobs(view: View) -> dict[str, JobView]:
    """The jobs that have not ended, by name."""
    return {job.name: job for job in view.jobs if is_live(job)}


def name_for(
    peer: Peer, of_cgroup: str, view: View, lives: Callable[[Peer], bool], others: Collection[str]
) -> str:
    """``of_cgroup`` is the job that the supervisor's cgroup names, ``others`` the names that supervisors have
    who are connected and that are in no event yet.
    """
    for job in view.jobs:
        if is_live(job) and job.peer == peer:
            return job.name
    name = of_cgroup or f"{NO_CGROUP}{peer.pid}"
    taken = {job.name for job in view.jobs if is_live(job) and job.peer is not None and lives(job.peer)}
    return f"{name}/{peer.pid}" if name in taken.union(others) else name


def is_of_one_process(name: str, of_cgroup: str) -> bool:
    """Whether it can name no job but that of one process: another process under it is another job."""
    return name != of_cgroup


def is_claimed(view: View, of_cgroup: str) -> bool:
    """Whether a hook has claimed a chip for the job, or for the one that it is a step of."""
    claims = frozenset(job for device in view.devices for job, _ in device.claims)
    return bool(of_cgroup) and registered_jobs.has(claims, of_cgroup)
