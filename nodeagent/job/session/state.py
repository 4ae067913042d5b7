"""The state of a session, and the transition in which one input changes it.

A ``SessionState`` is a frozen value: two sessions with the same inputs at the same times have equal ones. A
``Transition`` is one input being handled: the handlers of each phase change its state and add effects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from nodeagent.job.model import SECOND_NS, Counts, Policy, RunEvent, RunReason, RunReport, RunRequest
from nodeagent.job.role import SupervisorRole
from nodeagent.job.session.values import (
    Hung,
    KeepCounts,
    Leave,
    Print,
    ProcessId,
    RunFailure,
    RunNotReady,
    SessionEffect,
)


class SessionPhase(str, Enum):
    """Where the supervisor is with its command."""

    NEW = "new"
    """Nothing was given yet."""

    GATE = "gate"
    """No process of the job is left; the next run waits until it may begin."""

    PAUSING = "pausing"
    """A run has failed: a while passes before the next comes to the gate."""

    STARTING = "starting"
    RUNNING = "running"
    GATHERING = "gathering"
    """The evidence of a hang is gathered before the run is stopped."""

    JUDGING = "judging"
    """The command has failed by itself. Is there a fault that explains it?"""

    STOPPING = "stopping"
    """The run is asked to end; it has its grace."""

    KILLING = "killing"
    LEFT = "left"


class DaemonLinkState(str, Enum):
    """``unknown``: the supervisor has begun, and whether the daemon answers is not yet known."""

    UNKNOWN = "unknown"
    UP = "up"
    DOWN = "down"


class EndCause(str, Enum):
    """What ended a run, or keeps the next from beginning."""

    EXITED = "exited"
    """The command, by itself."""

    SIGNALLED = "signalled"
    """Somebody who wants the supervisor to end: the scheduler."""

    ASKED = "asked"
    """The daemon: it is to stop here, and may go on here."""

    SENT_AWAY = "sent_away"
    """The daemon: it is to leave this node."""

    NOT_HEALED = "not_healed"
    """The gate stayed shut for too long."""

    NOT_READY = "not_ready"
    """What the run needs was not there for too long."""

    SUSPENDED = "suspended"
    SUB_HEALTH = "sub_health"
    """The job's own strategy, for a chip that works, and not well."""

    UNKILLABLE = "unkillable"
    ORPHANED = "orphaned"
    """Its supervisor ended before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """``run`` is the one that is made, or the next; ``executions`` is how often the command was begun, which
    is less where a run was called off before. ``due_ns`` is when the phase ends by itself.

    Of the run that is made: ``process``, ``cause`` (once something ends it), ``failure`` (once its command
    has ended), ``emptied`` (nothing of it is left), ``progressed``, ``hung`` (a confirmed hang, until its
    evidence is reported), ``blame`` (the daemon's last request that would explain a failure, at
    ``blamed_ns``). ``is_reported``: its end was reported already; only what outlived it is still ended.
    ``not_ready``: what its command waits for before it is started. ``is_fresh``: ``wanted`` came since the
    daemon last began to answer.
    """

    phase: SessionPhase = SessionPhase.NEW
    policy: Policy = field(default_factory=Policy)
    counts: Counts = field(default_factory=Counts)
    boot_id: str = ""
    run: int = 1
    executions: int = 0
    why: RunReason = RunReason.FIRST
    due_ns: int | None = None
    link: DaemonLinkState = DaemonLinkState.UNKNOWN
    job: str = ""
    wanted: RunRequest | None = None
    is_fresh: bool = False
    signal: int | None = None
    reports: int = 0
    process: ProcessId | None = None
    not_ready: RunNotReady | None = None
    cause: EndCause | None = None
    failure: RunFailure | None = None
    emptied: bool = False
    is_reported: bool = False
    progressed: bool = False
    hung: Hung | None = None
    evidence_due_ns: int | None = None
    suspicion_ns: int = 0
    """When the last suspicion was, or the supervisor began."""

    blame: RunRequest | None = None
    blamed_ns: int = 0
    sub_health: str = ""
    """What the daemon last reported of a chip that works, and not well."""

    status: int | None = None
    """The exit status of a session that has left."""

    @property
    def role(self) -> SupervisorRole:
        return self.policy.role

    @property
    def may_be_sent_away(self) -> bool:
        """Only a job whose policy allows it leaves the node for a fault."""
        return self.policy.in_place or self.policy.placements is not None


class Transition:
    """One step: the time, the state as it becomes, and what is ordered."""

    def __init__(self, now_ns: int, state: SessionState) -> None:
        self.now_ns = now_ns
        self.state = state
        self.effects: list[SessionEffect] = []

    def change(self, **values: object) -> None:
        self.state = replace(self.state, **values)  # type: ignore[arg-type]

    def enter(self, phase: SessionPhase, within_s: float | None = None) -> None:
        """``within_s``: when the phase ends by itself; None: it does not."""
        self.change(phase=phase, due_ns=None if within_s is None else self.after(within_s))

    def next_run(self, why: RunReason) -> None:
        """What is known of the run before is forgotten."""
        self.change(
            run=self.state.run + 1,
            why=why,
            process=None,
            not_ready=None,
            cause=None,
            failure=None,
            emptied=False,
            is_reported=False,
            progressed=False,
            hung=None,
            evidence_due_ns=None,
            blame=None,
            blamed_ns=0,
        )

    def after(self, seconds: float) -> int:
        return self.now_ns + round(seconds * SECOND_NS)

    def leave(
        self,
        status: int,
        why: str,
        *,
        fault: bool = False,
        next_why: RunReason = RunReason.FAILED,
        pause_s: float = 0.0,
    ) -> None:
        self.change(status=status, evidence_due_ns=None)
        self.enter(SessionPhase.LEFT)
        self.add(Leave(status=status, why=why, fault=fault, next_why=next_why, pause_s=pause_s))

    def add(self, effect: SessionEffect) -> None:
        self.effects.append(effect)

    def print_message(self, text: str) -> None:
        self.add(Print(text=text))

    def keep(self, counts: Counts) -> None:
        if counts != self.state.counts:
            self.change(counts=counts)
            self.add(KeepCounts(counts=counts))

    def report(
        self,
        what: RunEvent,
        why: str = "",
        *,
        status: int | None = None,
        evidence: Mapping[str, str] | None = None,
    ) -> None:
        number = self.state.reports + 1
        self.change(reports=number)
        self.add(
            RunReport(
                number=number,
                run=self.state.run,
                what=what,
                why=why,
                status=status,
                evidence=dict(evidence or {}),
            )
        )
