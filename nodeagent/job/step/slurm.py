"""Slurm's words: how a step is started, what the environment of a batch script must lose, what squeue says.

Pure: it starts nothing. Options and variables are those of srun(1), squeue(1) and scontrol(1) of Slurm 22.05.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from nodeagent.job.step.model import Allocated

PROGRAMS: Final = ("srun", "squeue", "scontrol")
JOB_VARIABLE: Final = "SLURM_JOB_ID"

ENDING: Final = signal.SIGINT
"""With --disable-status srun sends it on to the supervisors; two within a second, or one TERM, HUP or QUIT,
make it kill them: src/srun/libsrun/srun_job.c of Slurm.
"""

PASSED_ON: Final = frozenset({signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM})
"""What srun sends on and does not die of."""

_NOT_OURS: Final = re.compile(
    r"SLURM_(\w*NODES|\w*NODELIST|N?TASKS(_\w+)?|NPROCS|\w*CPUS_PER_NODE|GPUS|(GPUS|TRES)_PER_TASK|DISTRIBUTION"
    r"|NO_KILL|WAIT|KILL_BAD_EXIT)|SQUEUE_\w+|SLURM_CLUSTERS"
)
"""What the batch script was given of its allocation: srun reads it as options, and a step on fewer nodes
cannot be made then, or its one task gets one of the chips. And what a user likes to see of squeue, which is
not what is asked for here.
"""

_FIELDS: Final = ("JOB", "STATE", "NODES")
_RUNS: Final = frozenset({"RUNNING", "SUSPENDED"})
_NO_NODES: Final = frozenset({"", "(null)", "None"})


class NoAnswer(Exception):
    """The scheduler's answer is none. The text says what it was."""


def srun(nodes: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
    """One supervisor on each of these nodes; all are ended once one has left with another status than 0."""
    count = str(len(nodes))
    return (
        "srun",
        "--kill-on-bad-exit=1",
        "--wait=0",  # one that is done waits for the others as long as it takes
        "--disable-status",  # or the first INT is not sent on
        "--cpu-bind=none",  # a site may bind one task to one core, and the supervisor is one
        "--overlap",  # the step before may not be quite over yet
        f"--nodes={count}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(nodes)}",
        "--",
        *command,
    )


def environment(of_batch: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in of_batch.items() if not _NOT_OURS.fullmatch(name)}


def asks(job: str) -> tuple[str, ...]:
    return ("squeue", "--noheader", f"--jobs={job}", "--format=%A|%T|%N")


def state_and_list(answer: str, job: str) -> tuple[str, str]:
    """What ``asks`` prints says: the state of the job, and its nodes as Slurm abbreviates them. A job that
    Slurm does not know any more has none. The last task of an array has the number of the whole array, and
    squeue tells of all its tasks.
    """
    lines = [each.split("|") for each in answer.split()]
    if any(len(each) != len(_FIELDS) for each in lines):
        raise NoAnswer(f"squeue: lines {'|'.join(_FIELDS)}, not {answer.strip()[:200]!r}")
    for number, state, nodes in lines:
        if number == job:
            return state, "" if nodes in _NO_NODES else nodes
    return "", ""


def names(abbreviated: str) -> tuple[str, ...]:
    return ("scontrol", "show", "hostnames", abbreviated)


def allocated(state: str, hostnames: str) -> Allocated:
    """``hostnames`` is what ``names`` prints."""
    return Allocated(nodes=tuple(hostnames.split()), ends=state not in _RUNS)
