"""What mutations put in the place of the functions about jobs: each is one slip of the pen."""

from dataclasses import replace
from typing import Any

from nodeagent.core.machines import job_review, jobs, supervisor_reports
from nodeagent.core.machines.jobs import Cause, JobTrigger
from nodeagent.core.model import Job, JobBegun, JobStage, Reset, RunReported
from nodeagent.core.state.state import EngineState

_said, _begun = supervisor_reports.run_reported, supervisor_reports.begun
_advance, _of_wait, _of_stop = jobs.advance, job_review.cause_of_wait, job_review.cause_of_stop

# ---------------------------------------------------------------------- what is taken for true


def none(*_: Any) -> None:
    return None


def no_words(*_: Any) -> str:
    return ""


def no(*_: Any) -> bool:
    return False


def yes(*_: Any) -> bool:
    return True


def out_of_the_way_as_it_leaves(job: Job) -> bool:
    return job.stage in (JobStage.HOLDING, JobStage.LEAVING) and not job.policy.only_watches


# ---------------------------------------------------------------------- what is said


def said_again(state: EngineState, given: RunReported) -> bool:
    """What was taken before is taken once more."""
    job = state.get(Job, given.job)
    if job is not None and given.number <= job.said:
        state.put(replace(job, said=given.number - 1))
    return _said(state, given)


def said_and_not_kept(state: EngineState, given: RunReported) -> bool:
    """Its number is forgotten."""
    before = state.get(Job, given.job)
    changed = _said(state, given)
    after = state.get(Job, given.job)
    if before is not None and after is not None:
        state.put(replace(after, said=before.said))
    return changed


def said_and_not_stored(state: EngineState, given: RunReported) -> bool:
    _said(state, given)
    return False


def begun_anew(state: EngineState, given: JobBegun) -> bool:
    """A supervisor that connects again is taken for another."""
    job = state.get(Job, given.job)
    if job is not None:
        state.drop(job)
    return _begun(state, given)


def begun_whatever_runs(state: EngineState, given: JobBegun) -> bool:
    """That it is about to make a run is taken for its making."""
    return _begun(state, replace(given, is_running=True))


# ---------------------------------------------------------------------- stages


def advance_twice(state: EngineState, job: Job, happened: JobTrigger, **changes: Any) -> Job | None:
    """A run is skipped."""
    if happened is JobTrigger.STOPPED:
        changes["run"] += 1
    return _advance(state, job, happened, **changes)


def advance_in_the_same_run(state: EngineState, job: Job, happened: JobTrigger, **changes: Any) -> Job | None:
    if happened is JobTrigger.STOPPED:
        changes["run"] = job.run
    return _advance(state, job, happened, **changes)


def send_away_unreported(state: EngineState, job: Job, cause: Cause) -> bool:
    return _advance(state, job, JobTrigger.SENT_AWAY, isolated=True, why=cause.why) is not None


# ---------------------------------------------------------------------- reasons


def wait_for_no_reset(state: EngineState, job: Job) -> Cause | None:
    cause = _of_wait(state, job)
    return None if cause is not None and cause.reset_id else cause


def wait_for_a_neighbour(state: EngineState, job: Job) -> Cause | None:
    """Also for any reset of another group."""
    pending = next((reset for reset in state.all(Reset) if not reset.has_ended), None)
    return _of_wait(state, job) if pending is None else Cause(why=pending.id)


def stop_for_no_reset(state: EngineState, job: Job) -> Cause | None:
    cause = _of_stop(state, job)
    return None if cause is not None and cause.reset_id else cause
