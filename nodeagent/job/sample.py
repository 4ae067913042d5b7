"""What is measured of a job's processes and chips, and what its program reports. No I/O.

Counters of processes are cumulative since the process began. Times are seconds on one clock that never steps
back; where it begins is the reader's choice.
"""

from dataclasses import dataclass
from enum import Enum


class ProgramPhase(str, Enum):
    """What a program reports to do. Only in ``train`` its steps must advance soon."""

    TRAIN = "train"
    EVAL = "eval"
    CHECKPOINT = "checkpoint"
    COMPILE = "compile"
    LOAD = "load"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """One process of the tree. ``holds``: it uses a chip, as the daemon has found; None if unknown.
    ``chips``: the names of those that it holds, () where only ``holds`` is known.

    ``state`` is the letter of ``/proc/PID/stat`` (R, S, D, T, t, Z), ``launcher`` is true of the command
    itself and of what only starts others. Counters are None where they cannot be read.
    """

    pid: int
    ppid: int
    start_time: int = 0
    holds: bool | None = None
    has_rank: bool = False
    launcher: bool = False
    state: str = "S"
    cpu_s: float | None = None
    read_bytes: int | None = None
    write_bytes: int | None = None
    rchar: int | None = None
    wchar: int | None = None
    syscr: int | None = None
    syscw: int | None = None
    chips: tuple[str, ...] = ()
    cpu_wait_s: float | None = None
    """How long it could run and waited for a processor: read of ranks whose program reports its times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipSample:
    """One chip of the job, as the daemon reads it. None: not read. ``rx_bytes``, ``tx_bytes`` are cumulative.

    ``known`` is false where the daemon does not observe the chip. ``handling`` is the daemon's decision on
    what is to become of the work on it.
    """

    name: str
    known: bool = True
    util: float | None = None
    mem_util: float | None = None
    power_w: float | None = None
    rx_bytes: int | None = None
    tx_bytes: int | None = None
    profiling: bool = False
    handling: str = "NONE"
    model: str = ""
    clock_mhz: float | None = None
    temperature_c: float | None = None
    power_limit_w: float | None = None
    throttled: tuple[str, ...] = ()
    """What slows the chip down now, by the driver's names: hw_thermal, sw_power_cap."""

    link_errors: int | None = None
    """Errors and repeats of all its links, cumulative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """Everything that was measured at one moment. ``chips`` is () where the daemon cannot be asked."""

    t_s: float
    processes: tuple[ProcessSample, ...] = ()
    chips: tuple[ChipSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What the program reports: a step number, a phase, the number of its newest checkpoint."""

    t_s: float
    step: int | None = None
    phase: ProgramPhase = ProgramPhase.TRAIN
    checkpoint: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """How long one rank has worked on one step by itself: without any wait for other ranks.

    ``group``: ranks of the same group do the same work; "" if all ranks of the job do. ``pid``: who has sent
    it, by the kernel, as the supervisor numbers it; 0 if unknown.
    """

    t_s: float
    step: int
    compute_s: float
    rank: int
    group: str = ""
    pid: int = 0
