"""The processes of a run: found, signalled, killed, reaped.

The supervisor is their subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), so a process that leaves its parent, its
group and its session stays below the supervisor: "all descendants" misses none that lives. A signal goes by
pidfd to the process that was seen, never to another one that got its number. It decides no signal itself.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import procfs
from nodeagent.job.shell.procfs import Stat

_GLANCES_BEFORE_A_LOOK: Final = 30

_NO_PIDFD: Final = {errno.ENOSYS, errno.EPERM, errno.EINVAL}
"""Before Linux 5.3, and where a container's filter does not know it."""


class Tree:
    """The processes of one supervisor. What was below it before it began (a script may start others and then
    exec) and its own helper processes are excluded: they are none of the job's.
    """

    def __init__(self) -> None:
        self._own = os.getpid()
        self._adopted: set[ProcessId] = set()
        self._strangers: set[int] = set()
        self._glances = 0
        before = (procfs.stat(pid) for pid in procfs.children(self._own))
        self._excluded: set[ProcessId] = {found.process for found in before if found is not None}

    def exclude(self, pid: int) -> None:
        """That child of the supervisor is no process of the run."""
        found = procfs.stat(pid)
        if found is not None:
            self._excluded.add(found.process)

    def adopt(self, survivors: Iterable[ProcessId]) -> None:
        """Processes of a run that outlived an earlier supervisor: no descendants of this one."""
        self._adopted.update(survivors)

    def members(self) -> list[Stat]:
        """The processes of the run that live, by pid."""
        processes = procfs.table()
        self._adopted = {each for each in self._adopted if _is(processes.get(each.pid), each)}
        self._excluded = {each for each in self._excluded if _is(processes.get(each.pid), each)}
        return _living(processes, self._below(processes))

    def glance(self) -> list[Stat]:
        """As ``members``, for frequent calls: a process that was not of the run a moment ago is not read
        again. A new process that gets the number of such a one within ten seconds is seen some minutes late.
        """
        self._glances += 1
        if self._glances % _GLANCES_BEFORE_A_LOOK == 0:
            self._strangers.clear()
        listed = set(procfs.pids())
        self._strangers &= listed
        looked_at = listed - self._strangers
        processes = {pid: found for pid in looked_at if (found := procfs.stat(pid)) is not None}
        members = self._below(processes)
        self._strangers |= processes.keys() - members - {self._own}
        return _living(processes, members)

    def _below(self, processes: Mapping[int, Stat]) -> set[int]:
        excluded = frozenset(each.pid for each in self._excluded)
        adopted = {each.pid for each in self._adopted if each.pid in processes}
        # The children of an adopted one that ends go to somebody else: they are kept by name.
        adopted |= procfs.descendants(processes, adopted, excluded | {self._own})
        self._adopted |= {processes[pid].process for pid in adopted}
        return procfs.descendants(processes, (self._own,), excluded) | adopted

    def signal_group(self, command: ProcessId, number: int, *, is_child: bool) -> None:
        """Signal the command's group; where it has none of its own (``--foreground``), to the command alone.

        ``is_child``: the command was not reaped, so that its number is its own, also where it is not shown.
        """
        leader = procfs.stat(command.pid)
        if not _is(leader, command):
            leader = None
        if leader is not None and leader.group != command.pid:
            send(command, number)
        # Once the command has ended, the number is still its group's as long as one of that lives.
        elif is_child or leader is not None or any(each.group == command.pid for each in self.members()):
            _if_it_lives(lambda: os.killpg(command.pid, number))

    def signal_adopted(self, number: int) -> None:
        for each in self.members():
            if each.process in self._adopted:
                send(each.process, number)

    def kill(self) -> list[Stat]:
        """Send KILL to every process once; those that were there. Call it until there are none: they may
        fork.
        """
        members = self.members()
        for each in members:
            send(each.process, signal.SIGKILL)
        return members


def _living(processes: Mapping[int, Stat], members: Iterable[int]) -> list[Stat]:
    return [processes[pid] for pid in sorted(members) if not processes[pid].is_dead]


def survivors_of(command: ProcessId | None, marker: tuple[str, str] | None) -> tuple[ProcessId, ...]:
    """What is left of a run that an earlier supervisor made: processes with the variable of the run in their
    environment, the command, its session while it lives (later the number may be another one's), and what is
    below these.
    """
    processes = procfs.table()
    own = os.getpid()
    found = {pid for pid in processes if marker is not None and pid != own and _has(pid, marker)}
    if command is not None and _is(processes.get(command.pid), command):
        found |= {each.pid for each in processes.values() if each.session == command.pid}
        found.add(command.pid)
    found |= procfs.descendants(processes, found, frozenset({own}))
    return tuple(processes[pid].process for pid in sorted(found) if not processes[pid].is_dead)


def _has(pid: int, marker: tuple[str, str]) -> bool:
    name, value = marker
    return procfs.environment(pid).get(name) == value


def send(process: ProcessId, number: int) -> None:
    """Send it to this process, and to no other one that has its number by now. Nothing happens once it has
    ended.
    """
    try:
        opened = _pidfd(process.pid)
    except ProcessLookupError:
        return
    try:
        if _is(procfs.stat(process.pid), process):
            if opened is None:
                send_to_child(process.pid, number)
            else:
                _if_it_lives(lambda: signal.pidfd_send_signal(opened, number))
    finally:
        if opened is not None:
            os.close(opened)


def send_to_child(pid: int, number: int) -> None:
    """Send it by the number, which no other process has: a child that was not reaped keeps it."""
    _if_it_lives(lambda: os.kill(pid, number))


def _pidfd(pid: int) -> int | None:
    """None where there are none. A Python that was built on older headers lacks the calls (conda's, some
    years). Raises ``ProcessLookupError``.
    """
    if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_PIDFD:
            return None
        raise


def reap() -> list[tuple[int, int]]:
    """(pid, status as of ``waitpid``) of all that have ended and are ours."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def _if_it_lives(signalled: Callable[[], None]) -> None:
    """A process that may not be signalled (a setuid program) stays a member."""
    with suppress(ProcessLookupError, PermissionError):
        signalled()


def _is(found: Stat | None, process: ProcessId) -> bool:
    return found is not None and found.start_time == process.start_time


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
"""linux/prctl.h"""


def become_subreaper() -> None:
    """Orphans below this process become its children. Raises ``OSError``."""
    _call("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """This process gets SIGKILL once the parent's thread that made it ends. Raises ``OSError``."""
    _call("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL)


def _call(name: str, option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({name}): {os.strerror(number)}")
