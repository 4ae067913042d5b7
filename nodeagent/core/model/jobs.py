"""Jobs whose command is supervised, as the core knows them: what supervisors report, and the live cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class JobStage(StrEnum):
    """Where a supervised job is.

    ``holding``: it does not run, and waits to be allowed to. ``running``: it may run, whether its command has
    begun yet or not. ``asked``: it is to stop, and has not yet, as far as is known. ``leaving``: it is to
    give up this node. ``ended``: it has, and uses nothing any more.
    """

    HOLDING = "holding"
    RUNNING = "running"
    ASKED = "asked"
    LEAVING = "leaving"
    ENDED = "ended"


class Wanted(StrEnum):
    """What the job's supervisor is to do. It follows from the stage; it is sent again on each connection."""

    RUN = "run"
    STOP = "stop"
    HOLD = "hold"
    LEAVE = "leave"


class RunReportKind(StrEnum):
    """What a supervisor reports of a run."""

    STARTED = "started"
    STOPPED = "stopped"
    """It ended as it was asked to: no process of the run is left."""

    EXITED = "exited"
    """It ended by itself: no process of the run is left."""

    SUSPECTED = "suspected"
    """It may hang: it seems to make no progress."""

    SUSPENDED = "suspended"
    """It hangs, as its supervisor has confirmed. It has nothing to do with SIGSTOP."""

    CLEARED = "cleared"
    """The suspicion was wrong, or the run goes on again."""

    SLOW = "slow"
    """A rank, or a chip, holds up the others of the run."""

    KEEPS_UP = "keeps_up"
    """One that was slow is so no longer."""

    UNKILLABLE = "unkillable"


class Recommendation(StrEnum):
    """What a scheduler does best with a job that uses this node, from the mildest."""

    NONE = "NONE"
    RERUN_REQUEST = "RERUN_REQUEST"
    RESTART_IN_PLACE = "RESTART_IN_PLACE"
    HOLD = "HOLD"
    RESCHEDULE = "RESCHEDULE"
    RESCHEDULE_ISOLATED = "RESCHEDULE_ISOLATED"
    GIVE_UP = "GIVE_UP"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """What may be done to a job. ``in_place``: it may be stopped and run again. ``yields``: also for another
    job's chip that is reset together with one of its own. ``reschedules``: it may be run elsewhere for a
    fault. ``strategy`` is the submitter's text, passed on to schedulers.
    """

    in_place: bool = False
    yields: bool = False
    reschedules: bool = False
    strategy: str = ""

    @property
    def only_watches(self) -> bool:
        return not (self.in_place or self.reschedules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The supervisor's process on the host; ``start_time`` in clock ticks since boot, ``uid`` its user's."""

    pid: int
    start_time: int
    uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBegun:
    """A supervisor has connected, or reports the state of its job again. ``devices`` are names or ids of the
    chips that the job is known to use besides those that a hook claimed for it: they only ever grow. ``run``
    is the one that it is about to make, or that runs (``is_running``). ``processes``: those on devices that
    the daemon has found to be the job's since the last time, by ``Holder.key``.
    """

    job: str
    kind: str
    peer: Peer
    run: int = 1
    is_running: bool = False
    devices: tuple[str, ...] = ()
    policy: JobPolicy = field(default_factory=JobPolicy)
    processes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReported:
    """A report of a supervisor. ``number`` grows with each: one that is not greater was taken before."""

    job: str
    number: int
    run: int
    what: RunReportKind
    why: str = ""
    status: int | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """Its supervisor has left with ``status``, or is dead (None) and no process of the job is left."""

    job: str
    why: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A supervised job."""

    name: str
    kind: str
    peer: Peer
    stage: JobStage
    since_ns: int
    run: int = 1
    """The run that it makes, or is allowed to make next."""

    policy: JobPolicy = field(default_factory=JobPolicy)
    devices: tuple[str, ...] = ()
    """Ids of chips that it uses besides those claimed for it."""

    said: int = 0
    """The greatest number of its supervisor's reports that was taken."""

    stopped: bool = False
    """Its supervisor reported that nothing of the asked run is left; lists of processes must confirm that."""

    end: RunReported | None = None
    """That report, until they confirm it."""

    started: bool = False
    """The command of the run has begun."""

    why: str = ""
    """Why it was last asked to do something; ``code``, ``device_id`` and ``reset_id`` are of that too."""

    code: str = ""
    device_id: str = ""
    reset_id: str = ""
    """The reset for which it was asked."""

    isolated: bool = False
    """It leaves, and the node or a chip of it is not to be used again."""

    suspended: bool = False
    """The run hangs, as its supervisor has confirmed."""

    slow: tuple[str, ...] = ()
    """Which ranks or chips hold up the others of the run, as its supervisor has found."""

    by_operator: bool = False
    """An operator asked it to stop."""

    due_ns: int | None = None
    """When its stage ends by itself."""

    blocked_ns: int | None = None
    """Since when something that does not pass by itself blocks the reset that it waits for."""

    held: bool = False
    """An operator wants it to stay stopped."""

    granted_ns: int = 0
    """When its run was allowed, or, before its first, when it began."""

    began_ns: int = 0
    """When its supervisor began; 0 where an earlier version has kept it."""

    asked_ns: int | None = None
    stopped_ns: int | None = None
    status: int | None = None
    """The exit status of its supervisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNote:
    """What an event or a view shows of a job."""

    name: str
    run: int
    stage: JobStage | None
    why: str
    recommended: Recommendation
    strategy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job that uses this node: supervised (``stage`` is set), or only claimed. ``devices`` are ids.

    ``handling_device`` (a name) and ``handling_code`` are of the fault that ``handling`` follows from.
    ``sub_health`` is a fault at SubHealthFault that came after the job had begun: "npu3 has 80818C06".
    """

    name: str
    kind: str
    devices: tuple[str, ...]
    recommended: Recommendation
    stage: JobStage | None = None
    wanted: Wanted | None = None
    run: int = 0
    why: str = ""
    code: str = ""
    device_id: str = ""
    isolated: bool = False
    handling: str = "NONE"
    handling_device: str = ""
    handling_code: str = ""
    sub_health: str = ""
    by_operator: bool = False
    policy: JobPolicy = field(default_factory=JobPolicy)
    peer: Peer | None = None
    since_ns: int = 0
    due_ns: int | None = None
    said: int = 0
    status: int | None = None
    slow: tuple[str, ...] = ()
