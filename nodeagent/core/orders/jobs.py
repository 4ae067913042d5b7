"""Orders about a supervised job, which ``Operator.only`` names: stop it, or run it again.

One that an operator has stopped stays so until an operator runs it again, or its supervisor leaves. Only a
job that allows to be stopped is.
"""

from dataclasses import replace

from nodeagent.core.jobs import causes, chips, lifecycle
from nodeagent.core.jobs.lifecycle import Cause
from nodeagent.core.model import Job, JobStage, Operator
from nodeagent.core.orders import answers, holds
from nodeagent.core.orders.answers import Answered
from nodeagent.core.state.state import State

_MOST_SHOWN = 256


def stop(state: State, given: Operator) -> Answered:
    job = _named(state, given)
    if not isinstance(job, Job):
        return job
    if job.held:
        return answers.not_possible(f"job: {job.name} is stopped by an operator already: {job.why}")
    if why := _why_not(job):
        return answers.not_possible(why)
    cause = Cause(why=f"stopped by {holds.said_by(given)}")
    if job.stage is JobStage.RUNNING:
        lifecycle.ask(state, job, cause, by_operator=True, held=True)
        return answers.accepted(job.name)
    due_ns = None if job.stage is JobStage.HOLDING else job.due_ns
    state.put(replace(job, by_operator=True, held=True, why=cause.why, due_ns=due_ns))
    return answers.accepted(job.name)


def rerun(state: State, given: Operator) -> Answered:
    job = _named(state, given)
    if not isinstance(job, Job):
        return job
    if why := _why_not(job):
        return answers.not_possible(why)
    why = f"run again by {holds.said_by(given)}"
    if job.stage is JobStage.RUNNING:
        lifecycle.ask(state, job, Cause(why=why), by_operator=True)
        return answers.accepted(job.name)
    if not job.held:
        return answers.not_possible(f"job: {job.name} {_awaits(state, job)}")
    due_ns = job.due_ns
    if job.stage is JobStage.HOLDING:
        due_ns = state.moment_ns + state.lookup.settings.jobs.heal_timeout_ns
    state.put(replace(job, held=False, why=why, due_ns=due_ns))
    return answers.accepted(job.name)


def _awaits(state: State, job: Job) -> str:
    """What it waits for, though no operator has stopped it."""
    if job.stage is JobStage.ASKED:
        return f"is asked to stop already, and is run again then: {job.why}"
    cause = causes.of_wait(state, job)
    return "waits for its chips, and is run then" + (f": {cause.why}" if cause is not None else "")


def _named(state: State, given: Operator) -> Job | Answered:
    there = chips.live(state)
    found = next((job for job in there if job.name == given.only), None)
    if found is not None:
        return found
    names = ", ".join(job.name for job in there) or "none"
    return answers.unknown(
        f"job: {given.only[:_MOST_SHOWN]!r} is not supervised on this node; there are: {names}"
    )


def _why_not(job: Job) -> str:
    if job.stage is JobStage.LEAVING:
        return f"job: {job.name} is leaving this node: {job.why}"
    if not job.policy.in_place:
        return f"job: {job.name} may not be stopped and run again by its policy; end it by its scheduler"
    return ""
