"""The life of a supervised job, as a table. Every change of its stage is made here.

                granted              asked
    holding ─────────────> running ─────────> asked
       ^    found running     │                 │
       └──────────────────────┴─────────────────┘
         exited, found stopped       stopped

    holding, running, asked ──> leaving      sent away
    each of them, leaving ────> ended

A run is counted up on the way back to ``holding``. What is not in the table does not happen: a job that
was asked to stop is not asked to go on, and one that was sent away is not kept. Why a job moves is in
``job_review``; what its supervisor reports is in ``supervisor_reports``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from nodeagent.core.judge.events import emit
from nodeagent.core.machines import job_views
from nodeagent.core.model import AGENT, EventKind, Job, JobStage, RunReported, RunReportKind
from nodeagent.core.state import limits, occupancy
from nodeagent.core.state.state import EngineState


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a job is asked to stop, or to leave: as text, and the fault and the reset where there is one."""

    why: str
    code: str = ""
    device_id: str = ""
    reset_id: str = ""


class JobTrigger(StrEnum):
    """What may move a job to another stage."""

    GRANTED = "granted"
    FOUND_RUNNING = "found_running"
    """Its supervisor made a run while it could not reach the daemon."""

    FOUND_STOPPED = "found_stopped"
    """Its supervisor is about to make a later run than was known."""

    EXITED = "exited"
    ASKED = "asked"
    STOPPED = "stopped"
    SENT_AWAY = "sent_away"
    ENDED = "ended"


TRANSITIONS: Final[Mapping[tuple[JobStage, JobTrigger], JobStage]] = {
    (JobStage.HOLDING, JobTrigger.GRANTED): JobStage.RUNNING,
    (JobStage.HOLDING, JobTrigger.FOUND_RUNNING): JobStage.RUNNING,
    (JobStage.HOLDING, JobTrigger.SENT_AWAY): JobStage.LEAVING,
    (JobStage.HOLDING, JobTrigger.ENDED): JobStage.ENDED,
    (JobStage.RUNNING, JobTrigger.ASKED): JobStage.ASKED,
    (JobStage.RUNNING, JobTrigger.EXITED): JobStage.HOLDING,
    (JobStage.RUNNING, JobTrigger.FOUND_STOPPED): JobStage.HOLDING,
    (JobStage.RUNNING, JobTrigger.SENT_AWAY): JobStage.LEAVING,
    (JobStage.RUNNING, JobTrigger.ENDED): JobStage.ENDED,
    (JobStage.ASKED, JobTrigger.STOPPED): JobStage.HOLDING,
    (JobStage.ASKED, JobTrigger.SENT_AWAY): JobStage.LEAVING,
    (JobStage.ASKED, JobTrigger.ENDED): JobStage.ENDED,
    (JobStage.LEAVING, JobTrigger.ENDED): JobStage.ENDED,
}


def can(job: Job, happened: JobTrigger) -> bool:
    return (job.stage, happened) in TRANSITIONS


def advance(state: EngineState, job: Job, happened: JobTrigger, **changes: Any) -> Job | None:
    """Put the job into the stage that follows, with ``changes`` of its other fields; its deadlines are gone
    unless they name one. None where nothing follows; then the state is as it was.
    """
    stage = TRANSITIONS.get((job.stage, happened))
    if stage is None:
        return None
    after = replace(
        job, **{"stage": stage, "since_ns": state.moment_ns, "due_ns": None, "blocked_ns": None, **changes}
    )
    state.put(after)
    return after


NOT_RUN: Final[Mapping[str, Any]] = {
    "started": False,
    "stopped": False,
    "end": None,
    "suspended": False,
    "slow": (),
}
"""What holds of a run that has not begun."""


def grant(state: EngineState, job: Job) -> None:
    """From here on it counts as running: nothing is reset between this and the command's start."""
    advance(state, job, JobTrigger.GRANTED, granted_ns=state.moment_ns, held=False, **NOT_RUN)


def ask(state: EngineState, job: Job, cause: Cause, *, by_operator: bool = False, held: bool = False) -> None:
    """Ask it to stop, so that it may be run again."""
    asked = advance(
        state,
        job,
        JobTrigger.ASKED,
        asked_ns=state.moment_ns,
        due_ns=state.moment_ns + state.lookup.settings.jobs.stop_timeout_ns,
        by_operator=by_operator,
        held=held,
        **_of(cause),
    )
    if asked is not None:
        emit_event(state, EventKind.JOB_ASKED, asked, cause.why, _wanted(asked))


def stop(state: EngineState, job: Job, run: int) -> Job | None:
    """That run is over, and what it was stopped for may begin. An operator's hold has no end of its own."""
    heal_ns = state.lookup.settings.jobs.heal_timeout_ns
    return advance(
        state,
        job,
        JobTrigger.STOPPED if job.stage is JobStage.ASKED else JobTrigger.EXITED,
        run=run + 1,
        asked_ns=job.asked_ns if job.stage is JobStage.ASKED else None,
        stopped_ns=state.moment_ns,
        due_ns=None if job.held else state.moment_ns + heal_ns,
        **NOT_RUN,
    )


def send_away(state: EngineState, job: Job, cause: Cause) -> bool:
    """It is to give up this node, where its policy allows anything at all; True if this is new."""
    if job.policy.only_watches:
        return False
    isolated = job_views.is_isolated(state, occupancy.used_by(state, job))
    leaving = advance(state, job, JobTrigger.SENT_AWAY, isolated=isolated, held=False, **_of(cause))
    if leaving is None:
        return False
    emit_event(state, EventKind.JOB_ASKED, leaving, cause.why, _wanted(leaving))
    return True


def _of(cause: Cause) -> Mapping[str, str]:
    return {
        "why": cause.why,
        "code": cause.code,
        "device_id": cause.device_id,
        "reset_id": cause.reset_id,
    }


def end(state: EngineState, job: Job, why: str, status: int | None) -> None:
    """It uses nothing any more. How it ended is kept for a while."""
    ended = advance(
        state,
        job,
        JobTrigger.ENDED,
        why=why,
        status=status,
        devices=(),
        slow=(),
        due_ns=state.moment_ns + limits.ENDED_JOBS_NS,
    )
    if ended is not None:
        emit_event(state, EventKind.JOB_ENDED, ended, why, {} if status is None else {_STATUS: str(status)})
        limits.forget_ended_jobs(state)


# ---------------------------------------------------------------------- its events

_STATUS: Final = "status"
"""The key, in the evidence of events, of the status with which a command or a supervisor has ended."""


def durations(job: Job) -> Mapping[str, str]:
    """When each step of the recovery was made, from when it was asked; nothing where it was not."""
    since_ns = job.asked_ns
    if since_ns is None:
        return {}
    steps = (("stopped_after_s", job.stopped_ns), ("granted_after_s", job.granted_ns))
    return {name: f"{(at_ns - since_ns) / 1e9:.3f}" for name, at_ns in steps if at_ns is not None}


def text_of_end(report: RunReported) -> str:
    how = "stopped" if report.what is RunReportKind.STOPPED else "ended by itself"
    status = "" if report.status is None else f" with status {report.status}"
    return f"run {report.run} {how}{status}" + (f": {report.why}" if report.why else "")


def evidence_of(report: RunReported) -> Mapping[str, str]:
    status = {} if report.status is None else {_STATUS: str(report.status)}
    of_it = {"said": report.what.value, "number": str(report.number), "run": str(report.run)}
    return {**report.evidence, **of_it, **status}


def _wanted(job: Job) -> Mapping[str, str]:
    of_reset = {"reset": job.reset_id} if job.reset_id else {}
    isolated = {"isolated": "true"} if job.isolated else {}
    return {"wanted": str(job_views.WANTED[job.stage]), **of_reset, **isolated}


def emit_event(
    state: EngineState,
    kind: EventKind,
    job: Job,
    why: str,
    evidence: Mapping[str, str] | None = None,
    run: int | None = None,
) -> None:
    """One event about the job, of the node; of that ``run``, where it is not ``job_views.shown_run``."""
    node = state.device(state.node_id)
    emit(
        state,
        kind,
        node,
        code=job.code,
        source=AGENT,
        why=why,
        evidence=evidence or {},
        job=job_views.note_of(state, job, job_views.shown_run(job) if run is None else run, why),
    )
