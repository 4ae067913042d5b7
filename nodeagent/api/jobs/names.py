"""What a supervised job is called, whose it is, and whether a hook has claimed a chip for it. Pure.

The name is that which the supervisor's cgroup proves. A second supervisor of one job adds its pid, and so
does one whose cgroup proves no job. A job has one user.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from nodeagent.core.machines import reset_blockers
from nodeagent.core.model import JobStage, JobView, Peer, View
from nodeagent.core.state.names import NO_CGROUP, cgroup_of


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
    known = (job.name for job in view.jobs if is_live(job) and job.peer == peer)
    if (before := next((each for each in known if is_proven(each, peer, of_cgroup)), None)) is not None:
        return before
    name = of_cgroup or f"{NO_CGROUP}{peer.pid}"
    taken = {job.name for job in view.jobs if is_live(job) and job.peer is not None and lives(job.peer)}
    return f"{name}/{peer.pid}" if name in taken.union(others) else name


def is_proven(name: str, peer: Peer, of_cgroup: str) -> bool:
    """Whether a name that the supervisor had before is one that its cgroup proves now."""
    own = of_cgroup or f"{NO_CGROUP}{peer.pid}"
    return name in (own, f"{own}/{peer.pid}")


def former_names(peer: Peer, name: str, view: View) -> Iterator[str]:
    """Those of live jobs that are this supervisor's under another name: it has proven them once, or an
    earlier version took its word.
    """
    return (job.name for job in view.jobs if is_live(job) and job.peer == peer and job.name != name)


def other_user(of_cgroup: str, peer: Peer, others: Iterable[tuple[str, Peer]]) -> Peer | None:
    """The supervisor of the same job, or of another step of it, that is another user's; None where none is.
    ``others`` are names of jobs with their supervisors.
    """
    if not of_cgroup:
        return None
    same_job = (other for name, other in others if _whole(name) == _whole(of_cgroup))
    return next((other for other in same_job if other.uid != peer.uid), None)


def _whole(name: str) -> str:
    """The job without its step, and without the pid of a second supervisor."""
    return cgroup_of(name).partition(".")[0]


def is_of_one_process(name: str, of_cgroup: str) -> bool:
    """Whether it can name no job but that of one process: another process under it is another job."""
    return name != of_cgroup


def is_claimed(view: View, of_cgroup: str) -> bool:
    """Whether a hook has claimed a chip for the job, or for the one that it is a step of."""
    claims = frozenset(job for device in view.devices for job, _ in device.claims)
    return bool(of_cgroup) and reset_blockers.has_registered_jobs(claims, of_cgroup)
