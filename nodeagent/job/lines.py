"""The lines between a supervisor and the daemon: one JSON object each, at most 64 KiB, both ways.

    supervisor                              daemon
    hello     protocol, version, pid    ->
                                        <-  welcome  job, what the site has set
    begin     kind, run, what it allows ->
                                        <-  wanted   at once, and at each change
    said      number, run, what         ->
                                        <-  taken    number: it is on the disk (or cannot be)
    ask       number                    ->
                                        <-  chips    number, what is read of the job's chips, who holds them
    bye       why, status               ->

A user's command that asks for the jobs of that user sends one line in place of ``hello``:

    own       job                       ->
                                        <-  own_job    one line each
                                        <-  own_event  one line each, of that job alone
                                        <-  own_end

Either side ends a connection whose lines it does not understand; the daemon sends the reason in ``refused``
first. A supervisor that connects again sends ``begin`` and every ``said`` that was not taken; what was taken
is not taken twice. Unknown keys are passed over: the other side may be newer. It reads and writes no socket.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nodeagent.job.codec import TaggedLines
from nodeagent.job.model import RunEvent, RunReport, RunRequest

PROTOCOL: Final = 1
MAX_LINE_BYTES: Final = 65_536

ADDED_REPORTS: Final = (RunEvent.SLOW, RunEvent.KEEPS_UP)
"""What is reported since the first version. A daemon that does not name them ends the connection for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorHello:
    pid: int
    version: str
    protocol: int = PROTOCOL
    job: str = ""
    """The submitter's name for the job; whose it is follows from the peer's cgroup, never from this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """``job`` is the daemon's name for it; ``defaults`` and ``limits`` are the site's, by policy key.
    ``resets`` is the mode of resets (off, dry-run, ask, on) by the vendor of each chip of the node.
    """

    job: str
    version: str
    protocol: int = PROTOCOL
    defaults: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    resets: Mapping[str, str] = field(default_factory=dict)
    reports: tuple[str, ...] = ()
    """What the daemon takes in ``said`` besides what its first version did. Nothing else is sent to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBegin:
    """``run`` is the next to be run, or the one that runs (``is_running``)."""

    kind: str
    run: int
    is_running: bool
    in_place: bool
    yields: bool
    reschedules: bool
    """It may be run elsewhere for a fault."""

    strategy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTaken:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntLimits:
    """When a run counts as hung: so long after its last step, and so long after its start without a second
    step. None: not known.
    """

    step_s: float | None = None
    start_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskChips:
    """``limits`` are shown to people."""

    number: int
    limits: LearntLimits = LearntLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipReading:
    """As ``sample.ChipSample``; a reading that is not there is None. ``holders`` are the pids of the
    processes on it, as the supervisor's PID namespace numbers them; None where they are not known.

    ``ports``: whether each link of the chip is up, by its name. ``ports_down`` are the ports of the node that
    jobs need, that the chip is behind, and that are down.
    """

    name: str
    known: bool
    util: float | None = None
    mem_util: float | None = None
    power_w: float | None = None
    rx_bytes: int | None = None
    tx_bytes: int | None = None
    profiling: bool = False
    handling: str = "NONE"
    holders: tuple[int, ...] | None = None
    model: str = ""
    clock_mhz: float | None = None
    temperature_c: float | None = None
    power_limit_w: float | None = None
    throttled: tuple[str, ...] = ()
    link_errors: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    ports: Mapping[str, bool] = field(default_factory=dict)
    ports_down: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipReadings:
    number: int
    chips: tuple[ChipReading, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bye:
    """The supervisor ends with this status, and reports nothing after it."""

    number: int
    status: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorRefused:
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOwnJobs:
    """The jobs whose supervisor is of the caller's user; also the latest events of ``job``, "" for none."""

    job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnJob:
    """``message`` is ``nodeagent.v1.Job`` as JSON."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnJobEvent:
    """``message`` is ``nodeagent.v1.Event`` as JSON."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnJobsEnd:
    """Nothing follows."""


FromSupervisor = SupervisorHello | JobBegin | RunReport | AskChips | Bye
FromDaemon = Welcome | RunRequest | ReportTaken | ChipReadings | SupervisorRefused
ToOwner = OwnJob | OwnJobEvent | OwnJobsEnd
Line = FromSupervisor | FromDaemon | AskOwnJobs | ToOwner

_LINES: Final = TaggedLines(
    "line",
    {
        "hello": SupervisorHello,
        "welcome": Welcome,
        "begin": JobBegin,
        "wanted": RunRequest,
        "said": RunReport,
        "taken": ReportTaken,
        "ask": AskChips,
        "chips": ChipReadings,
        "bye": Bye,
        "refused": SupervisorRefused,
        "own": AskOwnJobs,
        "own_job": OwnJob,
        "own_event": OwnJobEvent,
        "own_end": OwnJobsEnd,
    },
)


def encode(line: Line) -> bytes:
    """The line with its newline."""
    return _LINES.encode(line)


def tag_of(line: Line) -> str:
    return _LINES.tag_of(line)


def decode(data: bytes) -> Line:
    """Raises ``CodecError``."""
    line: Line = _LINES.decode(data)
    return line
