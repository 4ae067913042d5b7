"""Reports of supervisors: a job begins, a run has started or ended, the supervisor leaves.

They decide what runs, and nothing else: whether the chips are free of the job is read from the lists of
processes. What is to become of the job is decided in ``job_review``.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from nodeagent.core.judge.events import notice
from nodeagent.core.machines import job_review, jobs, reset_policy, users
from nodeagent.core.machines.jobs import Cause, JobTrigger
from nodeagent.core.model import (
    AGENT,
    Answer,
    EventKind,
    Job,
    JobBegun,
    JobEnded,
    JobStage,
    Refused,
    RunReported,
    RunReportKind,
)
from nodeagent.core.state import limits, occupancy, registry
from nodeagent.core.state.state import EngineState

UNKILLABLE = "process_unkillable"
"""The code of a process on a chip that no signal ends. Only what the daemon itself observes opens it."""


# ---------------------------------------------------------------------- it begins, or connects again


def begun(state: EngineState, given: JobBegun) -> bool:
    """A supervisor is there: with a job that was not known, or with one that goes on."""
    is_news = users.owned(state, given.job, given.processes)
    return _begun(state, given) or is_news


def _begun(state: EngineState, given: JobBegun) -> bool:
    state.answer = Answer()
    job = state.get(Job, given.job)
    if job is not None and job.stage is not JobStage.ENDED:
        if not _is_another_life(job, given):
            return _goes_on(state, job, given)
        jobs.end(state, job, "a new supervisor has begun, which knows nothing of it", None)
    elif why := limits.why_no_job(state, given.job, given.peer.uid):
        return _no_room(state, given, why)
    if (ended := state.get(Job, given.job)) is not None:
        state.drop(ended)
    began = Job(
        name=given.job,
        kind=given.kind,
        peer=given.peer,
        stage=JobStage.RUNNING if given.is_running else JobStage.HOLDING,
        since_ns=state.moment_ns,
        run=given.run,
        policy=given.policy,
        devices=_devices(state, (), given),
        started=given.is_running,
        granted_ns=state.moment_ns,
        began_ns=state.moment_ns,
        due_ns=None if given.is_running else state.moment_ns + state.lookup.settings.jobs.heal_timeout_ns,
    )
    state.put(began)
    _look_at(state, began)
    return True


def _look_at(state: EngineState, began: Job) -> None:
    """Its first event shows whether it may run: after what a free chip has waited for."""
    reset_policy.review(state)
    if began.stage is JobStage.HOLDING:
        job_review.grant_if_well(state, began)
    now = state.get(Job, began.name) or began
    jobs.emit_event(state, EventKind.JOB_BEGUN, now, "its supervisor has begun")
    state.unreviewed[state.node_id] = None


def _is_another_life(job: Job, given: JobBegun) -> bool:
    """A supervisor that is another process, and begins with the first run: it numbers its reports from one.
    One that was started again on its own journal is past its first run, or in it, or has never reported
    anything.
    """
    if given.peer == job.peer or given.run > 1 or given.is_running:
        return False
    return job.said > 0 or job.stage is JobStage.LEAVING


def _goes_on(state: EngineState, job: Job, given: JobBegun) -> bool:
    """It was connected before. What it reports of its run counts where it is later than what was known."""
    devices = _devices(state, job.devices, given)
    after = replace(job, kind=given.kind, peer=given.peer, policy=given.policy, devices=devices)
    if given.is_running and (after.stage is JobStage.HOLDING or given.run > after.run):
        after = _found_running(state, after, given.run)
    elif not given.is_running and given.run > after.run:
        after = _found_stopped(state, after, given.run)
    elif not given.is_running and after.stage is JobStage.ASKED and not after.stopped:
        after = replace(after, stopped=True)
    elif given.is_running and given.run == after.run and not after.stopped:
        after = replace(after, started=True)
    if after == job:
        return False
    state.put(after)
    return True


def _found_running(state: EngineState, job: Job, run: int) -> Job:
    """It was run while the daemon could not be asked: that counts as granted."""
    run = max(run, job.run)
    fresh: dict[str, Any] = {**jobs.NOT_RUN, "run": run, "started": True}
    if job.stage is JobStage.HOLDING:
        found = jobs.advance(state, job, JobTrigger.FOUND_RUNNING, granted_ns=state.moment_ns, **fresh)
        return job if found is None else found
    return replace(job, **fresh)


def _found_stopped(state: EngineState, job: Job, run: int) -> Job:
    """It is about to make a later run: the one that was known has ended, and its report is on the way."""
    if job.stage is JobStage.RUNNING:
        due_ns = state.moment_ns + state.lookup.settings.jobs.heal_timeout_ns
        found = jobs.advance(
            state, job, JobTrigger.FOUND_STOPPED, run=run, due_ns=due_ns, asked_ns=None, **jobs.NOT_RUN
        )
        return job if found is None else found
    if job.stage is JobStage.ASKED:
        return replace(job, stopped=True)
    return replace(job, run=run)


def _devices(state: EngineState, known: tuple[str, ...], given: JobBegun) -> tuple[str, ...]:
    """The ids of the job's devices: they only ever grow."""
    found = (registry.find(state, name) for name in given.devices)
    ids = (device.id for device in found if device is not None and device.id != state.node_id)
    return tuple(dict.fromkeys((*known, *ids)))


def _no_room(state: EngineState, given: JobBegun, full: str) -> bool:
    why = f"{given.job} is not supervised: {full}"
    state.answer = Answer(refused=Refused.NO_ROOM, reason=why)
    return notice(state, state.device(state.node_id), code="", why=why, source=AGENT)


# ---------------------------------------------------------------------- reports of a run


def run_reported(state: EngineState, given: RunReported) -> bool:
    """Once each: what has no greater number than the last was taken before."""
    job = state.get(Job, given.job)
    if job is None or job.stage is JobStage.ENDED or given.number <= job.said:
        return False
    job = replace(job, said=given.number)
    state.put(job)
    _BY_KIND[given.what](state, job, given)
    return True


def _started(state: EngineState, job: Job, given: RunReported) -> None:
    if given.run >= job.run:
        if job.stage is JobStage.HOLDING or given.run > job.run:
            job = _found_running(state, job, given.run)
        job = replace(job, started=True)
        state.put(job)
    if given.run > 1:
        why = given.why or f"run {given.run} has started"
        evidence = {**jobs.evidence_of(given), **jobs.durations(job)}
        jobs.emit_event(state, EventKind.JOB_RERUN, job, why, evidence, given.run)


def _ended_run(state: EngineState, job: Job, given: RunReported) -> None:
    """Nothing of the run is left, by this report. One that was asked stays so, and its event comes, when the
    lists of processes show the same (``job_review``).
    """
    if given.run >= job.run and job.stage is JobStage.ASKED and occupancy.left_of(state, job):
        state.put(replace(job, run=given.run, stopped=True, end=given))
        return
    if given.run >= job.run:
        job = jobs.stop(state, job, given.run) or job
    why = jobs.text_of_end(given)
    jobs.emit_event(state, EventKind.JOB_STOPPED, job, why, jobs.evidence_of(given), given.run)


def _suspected(state: EngineState, job: Job, given: RunReported) -> None:
    why = given.why or f"run {given.run} seems to make no progress"
    jobs.emit_event(state, EventKind.JOB_SUSPECTED, job, why, jobs.evidence_of(given), given.run)


def _suspended(state: EngineState, job: Job, given: RunReported) -> None:
    if given.run == job.run:
        job = replace(job, suspended=True)
        state.put(job)
    why = given.why or f"run {given.run} makes no progress"
    jobs.emit_event(state, EventKind.JOB_SUSPENDED, job, why, jobs.evidence_of(given), given.run)


def _cleared(state: EngineState, job: Job, given: RunReported) -> None:
    if given.run == job.run:
        job = replace(job, suspended=False)
        state.put(job)
    why = given.why or f"run {given.run} goes on"
    jobs.emit_event(state, EventKind.JOB_SUSPECTED, job, why, jobs.evidence_of(given), given.run)


WHO = "who"
"""The key, in the evidence of a report, of the rank or chip that is slow."""

MAX_SLOW = 16
"""So many are kept of one job; the events have all."""


def _slow(state: EngineState, job: Job, given: RunReported) -> None:
    """It only informs: a chip is judged by its own readings, never by a report."""
    who = given.evidence.get(WHO, "")
    if given.run == job.run and who:
        others = tuple(each for each in job.slow if each != who)
        is_slow = given.what is RunReportKind.SLOW
        job = replace(job, slow=(*others, who)[-MAX_SLOW:] if is_slow else others)
        state.put(job)
    what = "holds up" if given.what is RunReportKind.SLOW else "no longer holds up"
    why = given.why or f"{who or 'a rank'} {what} the others of run {given.run}"
    jobs.emit_event(state, EventKind.JOB_SLOW, job, why, jobs.evidence_of(given), given.run)


def _unkillable(state: EngineState, job: Job, given: RunReported) -> None:
    """The job leaves. Whether a chip takes no new work for that depends on the processes that the daemon
    sees: no report takes a chip out of service.
    """
    why = given.why or "a process of it cannot be ended"
    jobs.emit_event(state, EventKind.JOB_STOPPED, job, why, jobs.evidence_of(given), given.run)
    jobs.send_away(state, job, Cause(why=why, code=UNKILLABLE))


_BY_KIND: Final[dict[RunReportKind, Callable[[EngineState, Job, RunReported], None]]] = {
    RunReportKind.STARTED: _started,
    RunReportKind.STOPPED: _ended_run,
    RunReportKind.EXITED: _ended_run,
    RunReportKind.SUSPECTED: _suspected,
    RunReportKind.SUSPENDED: _suspended,
    RunReportKind.CLEARED: _cleared,
    RunReportKind.SLOW: _slow,
    RunReportKind.KEEPS_UP: _slow,
    RunReportKind.UNKILLABLE: _unkillable,
}


# ---------------------------------------------------------------------- it ends


def ended(state: EngineState, given: JobEnded) -> bool:
    job = state.get(Job, given.job)
    if job is None or job.stage is JobStage.ENDED:
        return False
    jobs.end(state, job, given.why, given.status)
    return True


def began_again(state: EngineState) -> None:
    """After a start of the daemon: no supervisor could report meanwhile, so that all have their full time."""
    settings = state.lookup.settings.jobs
    for job in occupancy.live_jobs(state):
        if job.due_ns is not None:
            is_held = job.stage is JobStage.HOLDING
            time_ns = settings.heal_timeout_ns if is_held else settings.stop_timeout_ns
            state.put(replace(job, due_ns=state.moment_ns + time_ns, blocked_ns=None))


def rebooted(state: EngineState) -> None:
    """No supervisor outlives its boot."""
    for job in occupancy.live_jobs(state):
        jobs.end(state, job, "the node was rebooted", None)
