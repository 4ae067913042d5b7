"""What becomes of each supervised job, after any change: granted, asked to stop, held, sent away.

It is looked at again whenever a device, a reset, a hold, a holder or a claim has changed, and when the time
of its stage is over. The reasons are in ``causes``, the stages in ``lifecycle``. A job whose policy allows
nothing is only watched: it is granted, whatever its chips are, unless they are just being reset.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.jobs import causes, chips, lifecycle
from nodeagent.core.jobs.lifecycle import Cause
from nodeagent.core.model import EventKind, Job, JobStage
from nodeagent.core.state.state import State


def review(state: State) -> bool:
    """Look at every job that has not ended. True if that changed one."""
    changed = False
    for job in chips.live(state):
        move = _BY_STAGE.get(job.stage)
        changed = (move is not None and move(state, job)) or changed
    return changed


def due(state: State, job: Job) -> None:
    """The time of its stage is over."""
    if job.stage is JobStage.ENDED:
        state.drop(job)
    elif job.stage is JobStage.RUNNING:
        if (cause := causes.of_leave(state, job)) is not None:
            lifecycle.send_away(state, job, cause)
    elif job.policy.only_watches:
        state.put(replace(job, due_ns=None))
    else:
        lifecycle.send_away(state, job, replace(_last(job), why=_why_too_late(state, job)))


def _why_too_late(state: State, job: Job) -> str:
    settings = state.lookup.settings.jobs
    if job.stage is JobStage.ASKED:
        left = chips.left_of(state, job) if job.stopped else ""
        within = f"it did not stop within {settings.stop_timeout_ns // SECOND_NS} s"
        return f"{within}: {left}" if left else within
    cause = causes.of_wait(state, job)
    within = f"its chips were not well within {settings.heal_timeout_ns // SECOND_NS} s"
    return within if cause is None else f"{within}: {cause.why}"


def _last(job: Job) -> Cause:
    return Cause(why=job.why, code=job.code, device_id=job.device_id, reset_id=job.reset_id)


# ---------------------------------------------------------------------- by stage


def grant_if_well(state: State, job: Job) -> bool:
    """Allow the run of one that is held, where nothing speaks against it."""
    if causes.of_wait(state, job) is not None:
        return False
    if not job.policy.only_watches and (job.held or causes.of_no_return(state, job) is not None):
        return False
    lifecycle.grant(state, job)
    return True


def _holding(state: State, job: Job) -> bool:
    if grant_if_well(state, job):
        return True
    if job.policy.only_watches:
        return _watch(state, job, None)
    cause = causes.of_no_return(state, job)
    return cause is not None and lifecycle.send_away(state, job, cause)


def _running(state: State, job: Job) -> bool:
    if job.policy.in_place and job.held:
        lifecycle.ask(state, job, Cause(why=job.why), by_operator=True, held=True)
        return True
    if job.policy.in_place and (cause := causes.of_stop(state, job)) is not None:
        lifecycle.ask(state, job, cause)
        return True
    away = causes.of_leave(state, job) if job.policy.reschedules else None
    if away is None:
        return _watch(state, job, None)
    if job.policy.in_place and causes.is_awaited(state, job):
        stop_ns = state.lookup.settings.jobs.stop_timeout_ns
        return _watch(state, job, state.moment_ns + stop_ns if job.due_ns is None else job.due_ns)
    return lifecycle.send_away(state, job, away)


def _watch(state: State, job: Job, due_ns: int | None) -> bool:
    """It stays as it is until then: a reset that would help is waited for, but not for ever."""
    if job.due_ns == due_ns:
        return False
    state.put(replace(job, due_ns=due_ns))
    return True


def _asked(state: State, job: Job) -> bool:
    if job.stopped and not chips.left_of(state, job):
        stopped = lifecycle.stop(state, job, job.run)
        if stopped is not None:
            why, evidence = f"nothing of run {job.run} is left", lifecycle.durations(stopped)
            if job.end is not None:
                why = lifecycle.words_of_end(job.end)
                evidence = {**lifecycle.evidence_of(job.end), **evidence}
            lifecycle.emit_event(state, EventKind.JOB_STOPPED, stopped, why, evidence, job.run)
        return True
    cause = causes.of_no_return(state, job)
    return cause is not None and lifecycle.send_away(state, job, cause)


_BY_STAGE: Final[Mapping[JobStage, Callable[[State, Job], bool]]] = {
    JobStage.HOLDING: _holding,
    JobStage.RUNNING: _running,
    JobStage.ASKED: _asked,
}
