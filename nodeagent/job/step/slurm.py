"""Slurm's side of a step: command lines, environments, the answers of squeue, and the calls themselves.

Options are those of srun(1), squeue(1) and scontrol(1) of Slurm 22.05, variables also those of 26.05. The
functions are pure; ``Scheduler`` calls. A controller that does not answer is asked again, for as long as it
takes: it may be restarting, and the job has its nodes all the same. It decides nothing.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.step.values import Allocated

PROGRAMS: Final = ("srun", "squeue", "scontrol")
JOB_VARIABLE: Final = "SLURM_JOB_ID"

ENDING: Final = signal.SIGINT
"""With --disable-status srun sends it on to the supervisors; two within a second, or one TERM, HUP or QUIT,
make it kill them: src/srun/libsrun/srun_job.c of Slurm.
"""

PASSED_ON: Final = frozenset({signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM})
"""What srun sends on and does not die of."""

_OF_SLURM: Final = re.compile(r"(SLURM|SRUN|SQUEUE|SBATCH|SALLOC)_\w+")
_PASSED: Final = re.compile(
    r"SLURM_("
    r"CONF|CONF_SERVER|JWT|CLUSTER_NAME|WORKING_CLUSTER|DEBUG|DEBUG_FLAGS"  # where Slurm is
    r"|JOBID|JOB_(ID|SLUID|NAME|UID|GID|USER|GROUP|ACCOUNT|PARTITION|QOS|RESERVATION|COMMENT|EXTRA|LICENSES"
    r"|START_TIME|END_TIME|DEPENDENCY)|RESTART_COUNT|ARRAY_\w+|HET_SIZE|SUBMIT_(DIR|HOST)"  # the job
    r"|TOPOLOGY_\w+|RLIMIT_\w+|UMASK|PRIO_PROCESS|SPANK_\w+|PMIX?\w*|MPI_TYPE|NETWORK|RESV_PORTS"  # processes
    r"|MEM_PER_(NODE|CPU)|CPU_FREQ_REQ|GPU_FREQ|PROFILE|ACCTG_FREQ|OOM_?KILL_?STEP|SIGNAL"  # nodes
    r"|LABELIO|UNBUFFEREDIO|OPEN_MODE|STD(IN|OUT|ERR)MODE|REMOTE_CWD|WORKING_DIR|TASK_(PRO|EPI)LOG|(PRO|EPI)LOG"
    r"|SRUN_REDUCE_TASK_EXIT_MSG"
    r")|SRUN_CONTAINER(_\w+)?"
)
"""The variables of Slurm that a step gets from the batch script. srun takes its options from such variables
(srun(1), INPUT ENVIRONMENT VARIABLES, of 22.05 to 26.05), and sbatch sets some of them: with the sizes of the
allocation no step on fewer nodes can be made, and with CPUS_PER_TASK (from 23.11 on SLURM_, before it SRUN_),
CPUS_PER_GPU, EXACT, HINT or THREADS_PER_CORE the one task of a node gets the processors or chips of one rank.
So each that is not listed here is left out, also one of a later version. HET_SIZE is no size of a step: in a
heterogeneous job srun starts nothing without it (``_het_grp_test`` of src/srun/srun_job.c). What a task needs
to know of its step srun sets anew, and the options of squeue are not those of its caller.
"""

_FIELDS: Final = ("JOB", "STATE", "NODES")
_RUNS: Final = frozenset({"RUNNING", "SUSPENDED"})
_NO_NODES: Final = frozenset({"", "(null)", "None"})


class SchedulerError(Exception):
    """The scheduler has given no usable answer. The message names it."""


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
    """All variables that are not Slurm's, and of Slurm's those that say nothing of the size of a step."""
    return {
        name: value
        for name, value in of_batch.items()
        if not _OF_SLURM.fullmatch(name) or _PASSED.fullmatch(name)
    }


def asks(job: str) -> tuple[str, ...]:
    return ("squeue", "--noheader", f"--jobs={job}", "--format=%A|%T|%N")


def state_and_list(answer: str, job: str) -> tuple[str, str]:
    """The answer to ``asks``: the state of the job, and its nodes as Slurm abbreviates them. A job that
    Slurm does not know any more has none. The last task of an array has the number of the whole array, and
    squeue lists all its tasks.
    """
    lines = [each.split("|") for each in answer.split()]
    if any(len(each) != len(_FIELDS) for each in lines):
        raise SchedulerError(f"squeue: lines {'|'.join(_FIELDS)}, not {answer.strip()[:200]!r}")
    for number, state, nodes in lines:
        if number == job:
            return state, "" if nodes in _NO_NODES else nodes
    return "", ""


def names(abbreviated: str) -> tuple[str, ...]:
    return ("scontrol", "show", "hostnames", abbreviated)


def allocated(state: str, hostnames: str) -> Allocated:
    """``hostnames`` is what ``names`` prints."""
    return Allocated(nodes=tuple(hostnames.split()), ends=state not in _RUNS)


ANSWER_LIMIT_S: Final = 30.0
LONGEST_PAUSE_S: Final = 10.0
_UNKNOWN_JOB: Final = "Invalid job id"
"""The message of squeue about a job that it has forgotten: slurm_errno.h, ESLURM_INVALID_JOB_ID."""


class Scheduler:
    def __init__(self, of_batch: Mapping[str, str]) -> None:
        self._job = of_batch[JOB_VARIABLE]
        self._environment = environment(of_batch)
        self._names = ("", "")

    def allocated(self, pause: Callable[[float], bool]) -> Allocated | None:
        """``pause`` waits that long, and is true where somebody wants the loop to end: then None."""
        seconds = 0.5
        has_printed = False
        while True:
            try:
                return self._asked()
            except SchedulerError as error:
                if not has_printed:
                    print_message(f"{error}; it is asked again until it answers")
                has_printed = True
            if pause(seconds):
                return None
            seconds = min(2 * seconds, LONGEST_PAUSE_S)

    def start(self, nodes: Sequence[str], command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Raises ``OSError``."""
        return subprocess.Popen(srun(nodes, command), env=self._environment, start_new_session=True)

    def _asked(self) -> Allocated:
        state, abbreviated = state_and_list(self._output(asks(self._job)), self._job)
        if abbreviated != self._names[0]:  # it seldom changes
            self._names = abbreviated, self._output(names(abbreviated)) if abbreviated else ""
        return allocated(state, self._names[1])

    def _output(self, argv: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=ANSWER_LIMIT_S,
                check=False,
            )
        except OSError as error:
            raise SchedulerError(f"{argv[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise SchedulerError(f"{argv[0]} has not answered within {ANSWER_LIMIT_S:g} s") from error
        if done.returncode == 0:
            return done.stdout
        if _UNKNOWN_JOB in done.stderr:
            return ""
        message = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise SchedulerError(f"{argv[0]}: {message}")
