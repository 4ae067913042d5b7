"""Which job of Slurm a process belongs to where its cgroup does not have the number: from the prolog's record
and from the ``slurmstepd`` above the process.

The prolog (packaging/examples/slurm/prolog) keeps a record for each job on this node: a file with the number
of the job, which holds the uid of its user, and one with its SLUID, which holds the number. Slurm gives both
to the prolog: ``SLURM_JOB_UID``, and since 25.11 ``SLURM_JOB_SLUID`` (prolog_epilog.html).

``slurmstepd`` is root's, and writes its step into its command line, such as ``slurmstepd: [7.0]``
(``_set_job_log_prefix`` of src/slurmd/slurmstepd/slurmstepd.c, 22.05 to 26.05). A program that a user may
start as root, such as sudo, can have the same command line. So it counts only where the prolog's record has
the user of the process: nobody gets the name of another user's job. Nothing is changed here.
"""

import re
import stat
from pathlib import Path
from typing import Final

from nodeagent.system.processes import ancestry, read, stat_of, users_of

RECORDS: Final = Path("run/nodeagent/slurm")
"""Below the root of the node."""

SLUID: Final = r"s[0-9A-HJKMNP-TV-Z]{13}"
"""As ``print_sluid`` writes it (src/common/sluid.c): 64 bits in Crockford's base 32."""

_ROOT_UID: Final = 0
_STEP_DAEMON: Final = "slurmstepd"
_TITLE: Final = re.compile(r"slurmstepd: \[(?P<job>\d+)(?:\.(?P<step>\w+(?:\+\d+)?))?(?: stepmgr)?\]\s*")
_NUMBER: Final = re.compile(r"\d{1,10}")
_MOST_BYTES: Final = 64


def job_by_record(procfs: Path, pid: int) -> str:
    """``slurm:JOB.STEP``, "" where there is none: the step above the process, if the prolog's record of that
    job has the process's own user. Raises ``OSError`` once the process has ended.
    """
    if not (procfs.parent / RECORDS).is_dir():
        return ""
    step = step_above(procfs, pid)
    number = step.removeprefix("slurm:").partition(".")[0]
    if not number:
        return ""
    kept = recorded_number(procfs.parent, number)
    return step if kept and users_of(procfs / str(pid))[:1] == [int(kept)] else ""


def step_above(procfs: Path, pid: int) -> str:
    """``slurm:JOB.STEP`` by the nearest ``slurmstepd`` above the process, "" where there is none. It is no
    proof.
    """
    for above, _ in ancestry(pid, procfs):
        folder = procfs / str(above)
        try:
            if stat_of(folder)[0] != _STEP_DAEMON or set(users_of(folder)) != {_ROOT_UID}:
                continue
            title = _TITLE.fullmatch(read(folder / "cmdline").rstrip("\0"))
        except OSError:
            return ""
        if title is not None:
            job, step = title["job"], title["step"]
            return f"slurm:{job}.{step}" if step else f"slurm:{job}"
    return ""


def recorded_number(root: Path, name: str) -> str:
    """The number in the prolog's record of this name: of a SLUID the job's number, of that the user's uid. ""
    where there is none, or another user than root may write it.
    """
    folder = root / RECORDS
    try:
        for each in (folder, folder / name):
            found = each.lstat()
            if found.st_uid != _ROOT_UID or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return ""
        with (folder / name).open("rb") as opened:
            number = opened.read(_MOST_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return ""
    return number if _NUMBER.fullmatch(number) else ""
