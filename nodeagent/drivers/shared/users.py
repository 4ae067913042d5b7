"""The process behind a pid that a driver reports for a device, with its job.

Only the name of its command is reported, because arguments may hold secrets. No process is touched.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from nodeagent.system.job_cgroups import job_of_process
from nodeagent.system.processes import START, SYSTEM, USER, printable, stat_of
from nodeagent.wire import DeviceUser


def user_of(procfs: Path, pid: int) -> DeviceUser | None:
    """The process, or None if there is none, or another one has taken its number meanwhile.

    ``procfs`` is the root that holds ``PID/stat``. A process that may not be looked at is reported without
    its start, command and job: it holds the device all the same.
    """
    folder = procfs / str(pid)
    try:
        command, start_time = _stat(folder)
        job = job_of_process(procfs, pid)
        if _stat(folder)[1] != start_time:
            return None
    except (FileNotFoundError, ProcessLookupError):
        return None
    except PermissionError:
        return DeviceUser(pid=pid, start_time=0, command="")
    return DeviceUser(pid=pid, start_time=start_time, command=command, job=job)


def cpu_time_s(procfs: Path, users: Iterable[DeviceUser]) -> float | None:
    """What these have computed since they began, in all threads; None where one of them cannot be read."""
    ticks = 0
    for user in users:
        try:
            fields = stat_of(procfs / str(user.pid))[1]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return None
        if int(fields[START]) != user.start_time:
            return None
        ticks += int(fields[USER]) + int(fields[SYSTEM])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(folder: Path) -> tuple[str, int]:
    """(command, start time in clock ticks since boot); a command may hold blanks and brackets itself."""
    command, fields = stat_of(folder)
    return printable(command), int(fields[START])
