"""The process at the other end of a connection: who it is, what its job is called, whether it still lives.

All of it comes from the kernel; nothing that the process reports about itself counts. A pid with the time
when its process began is never another process. The name of a job is the one that the supervisor's cgroup
proves; a second supervisor of one job adds its pid, and so does one whose cgroup proves no job. A job has one
user. It signals no process.
"""

import re
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from nodeagent.api.access.credentials import UCRED
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.machines import reset_blockers
from nodeagent.core.model import Holder, JobStage, JobView, Peer, View
from nodeagent.core.state.names import NO_CGROUP, cgroup_of
from nodeagent.system.job_cgroups import job_of_process
from nodeagent.system.processes import ENDED, START, STATE, ancestry, read, stat_of

PROCFS: Final = Path("/proc")

_HIDDEN: Final = (
    "the daemon cannot see process {pid} in /proc: run the daemon in the host's PID namespace; if /proc is"
    " mounted with hidepid and gid, make it a member of that group"
)


def peer_of(connection: socket.socket, procfs: Path = PROCFS) -> Peer:
    """Raises ``Refusal`` where the daemon cannot see the process, ``OSError`` where it is not known which."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED.size)
    pid, uid, _ = UCRED.unpack(raw)
    try:
        start_time = int(stat_of(procfs / str(pid))[1][START])
    except OSError as error:
        raise Refusal(Status.FAILED_PRECONDITION, _HIDDEN.format(pid=pid)) from error
    return Peer(pid=pid, start_time=start_time, uid=uid)


def job_of_peer(peer: Peer, procfs: Path = PROCFS) -> str:
    """The job that its cgroup proves, "" where it proves none, or where the process is not the one that
    connected: its pid may be another's by now. Raises ``Refusal`` as ``peer_of``.
    """
    try:
        job = job_of_process(procfs, peer.pid, peer.uid)
        is_the_same = lives(peer, procfs) and peer.uid in _numbers(peer.pid, "Uid", procfs)
    except OSError as error:
        raise Refusal(Status.FAILED_PRECONDITION, _HIDDEN.format(pid=peer.pid)) from error
    return job if is_the_same else ""


def lives(peer: Peer, procfs: Path = PROCFS) -> bool:
    """Whether it has not ended. What may not be looked at is there."""
    try:
        fields = stat_of(procfs / str(peer.pid))[1]
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return int(fields[START]) == peer.start_time and fields[STATE] not in ENDED


class Pids:
    """Which pid a process has in the PID namespace of the peer, by the daemon's pid.

    In a container only what is below the peer has one there: others may have the number as well, in a
    namespace of their own. Each process is looked up once, since a job may have a thousand on its chips.
    """

    def __init__(self, peer: Peer, procfs: Path = PROCFS) -> None:
        self._peer = peer
        self._procfs = procfs
        self._depth = len(_numbers(peer.pid, "NSpid", procfs))
        self._known: dict[Holder, int | None] = {}

    def of(self, holders: Iterable[Holder]) -> Mapping[Holder, int | None]:
        """None where it has none, or that cannot be seen. What was known of all others is forgotten."""
        before, self._known = self._known, {}
        for holder in holders:
            if holder not in self._known:
                known = holder in before
                self._known[holder] = before[holder] if known else self._looked_up(holder.pid)
        return self._known

    def _looked_up(self, pid: int) -> int | None:
        if self._depth <= 1:
            return pid
        numbers = _numbers(pid, "NSpid", self._procfs)
        is_below = (self._peer.pid, self._peer.start_time) in ancestry(pid, self._procfs)
        return numbers[self._depth - 1] if is_below and len(numbers) >= self._depth else None


def _numbers(pid: int, field: str, procfs: Path) -> list[int]:
    """Those of a field of its ``status`` (proc_pid_status(5)): ``NSpid``, the pids from that in the namespace
    of ``procfs`` inwards; ``Uid``, all of its users. Empty where it cannot be seen.
    """
    try:
        status = read(procfs / str(pid) / "status")
    except OSError:
        return []
    found = re.search(rf"^{field}:(.*)$", status, re.MULTILINE)
    return [] if found is None else [int(number) for number in found[1].split()]


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
    earlier version believed it.
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
