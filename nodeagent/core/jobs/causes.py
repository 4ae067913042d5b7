"""Why a job is asked to stop, is sent away, or must wait: read from the state, which it does not change.

A fault that only restarts its job, such as an application fault, counts for the run that it hit and for no
later one: the chip is well. What only a reload of the tables brought up asks nobody to stop.
"""

from collections.abc import Iterable, Iterator

from nodeagent.core.jobs import chips, job_views
from nodeagent.core.jobs.lifecycle import Cause
from nodeagent.core.model import (
    Condition,
    Device,
    Handling,
    Job,
    JobStage,
    Level,
    Promotion,
    Reset,
    ResetMode,
    ResetStage,
    Verdict,
)
from nodeagent.core.resets import asking_faults, blockers, policy
from nodeagent.core.state.state import State
from nodeagent.core.verdicts import recovery_action
from nodeagent.core.verdicts.contributions import contributions
from nodeagent.core.verdicts.judge import PRECEDENCE, SEPARATING_LEVELS, Contribution

_STOPS = (Handling.RESCHEDULE, Handling.STOP_RESET_RESTART, Handling.RESTART_JOB)
"""Beside these no run begins."""


# ---------------------------------------------------------------------- stop


def of_stop(state: State, job: Job) -> Cause | None:
    """Why it is to stop, so that it can be run again here; None where nothing says so."""
    return own_reset(state, job) or _restart(state, job) or _neighbours_reset(state, job)


def own_reset(state: State, job: Job) -> Cause | None:
    """A reset that will be done, for a fault of its own chip or by a person's order for that. One that waits
    for its chip to be free stops nobody.
    """
    own = chips.chips_of(state, job)
    for reset in _to_be_done(state):
        for chip_id in reset.members:
            if chip_id not in own:
                continue
            asking = _asking_conditions(state, reset, chip_id)
            stopping = [each for each in asking if each.level is not Level.FREE_RESTART_NPU]
            if stopping or (reset.who and chip_id == reset.asker_id):
                code = stopping[0].code if stopping else ""
                return _for_reset(state, reset, chip_id, code)
    return None


def _asking_conditions(state: State, reset: Reset, chip_id: str) -> list[Condition]:
    if chip_id == reset.asker_id:
        return asking_faults.asking_conditions(state, reset)
    return [each for each in state.on(Condition, chip_id) if policy.asks(state, each)]


def _restart(state: State, job: Job) -> Cause | None:
    """A fault after which the job is to be run again, and that is all."""
    for device, said in _contributions(state, job):
        if said.stance[1] is Handling.RESTART_JOB and _counts(state, job, said) and _is_heard(state, said):
            why = f"{device.name}: {said.reason.code} restarts the job"
            return Cause(why=why, code=said.reason.code, device_id=device.id)
    return None


def _neighbours_reset(state: State, job: Job) -> Cause | None:
    """A reset of its chip for another's fault, which waits for nobody but jobs that make way."""
    if not job.policy.yields:
        return None
    own = chips.chips_of(state, job)
    for reset in _to_be_done(state):
        if own.isdisjoint(reset.members) or not _waits_for_such_alone(state, reset):
            continue
        chip_id = next(each for each in reset.members if each in own)
        return _for_reset(state, reset, chip_id, next(iter(reset.codes), ""))
    return None


def _waits_for_such_alone(state: State, reset: Reset) -> bool:
    """The job of the faulty chip stops first: nobody makes way for a reset that may never come."""
    using = {job.name: job for chip_id in reset.members for job in chips.supervised_on(state, chip_id)}
    others = [job for job in using.values() if not chips.is_out_of_the_way(job)]
    if not all(_makes_way(job) and own_reset(state, job) is None for job in others):
        return False
    settings = state.lookup.settings.reset
    if state.moment_ns < blockers.cooled_ns(state, settings):
        return False
    return not blockers.of_start(state, reset, settings, others)


def _makes_way(job: Job) -> bool:
    is_there = job.stage in (JobStage.RUNNING, JobStage.ASKED)
    return is_there and job.policy.in_place and job.policy.yields


def _for_reset(state: State, reset: Reset, chip_id: str, code: str) -> Cause:
    whose = blockers.names(state, reset.members)
    why = f"{reset.id} of {whose} for {code or reset.reason or reset.who}"
    return Cause(why=why, code=code, device_id=chip_id, reset_id=reset.id)


# ---------------------------------------------------------------------- leave


def of_leave(state: State, job: Job) -> Cause | None:
    """Why a job that runs is to be run elsewhere: its handling says so, and nothing here is about to help."""
    found = _contributions(state, job)
    return _worst(
        each for each in found if each[1].stance[1] is Handling.RESCHEDULE and _counts(state, job, each[1])
    )


def of_no_return(state: State, job: Job) -> Cause | None:
    """Why one that has stopped, or is to, will not be run again here: no reset is about to help."""
    found = []
    for device, said in _contributions(state, job):
        is_out = said.stance[1] is Handling.RESCHEDULE or said.stance[0] is Verdict.ISOLATE
        if is_out and _counts(state, job, said) and not _is_helped(state, device, said):
            found.append((device, said))
    return _worst(found)


def is_awaited(state: State, job: Job) -> bool:
    """Whether a reset of one of its chips is to be expected, which is not proposed yet."""
    return any(policy.is_awaited(state, state.device(each)) for each in sorted(chips.chips_of(state, job)))


def _is_helped(state: State, device: Device, said: Contribution) -> bool:
    if _of_the_job(state, said):
        return False
    condition = state.get(Condition, said.reason.id)
    whose = device if condition is None else state.device(condition.device_id)
    chip = state.chip_of(whose)
    covered = any(chip.id in reset.members for reset in _to_be_done(state))
    return covered or policy.is_awaited(state, chip)


def _worst(found: Iterable[tuple[Device, Contribution]]) -> Cause | None:
    """The reason that is the least likely to go away."""
    worst = max(
        found, key=lambda each: -1 if each[1].level is None else PRECEDENCE[each[1].level], default=None
    )
    return None if worst is None else _away(*worst)


def _away(device: Device, said: Contribution) -> Cause:
    what = said.reason.code or said.reason.text
    level = f" at {said.reason.level}" if said.reason.level else ""
    return Cause(why=f"{device.name}: {what}{level}", code=said.reason.code, device_id=device.id)


# ---------------------------------------------------------------------- wait


def of_wait(state: State, job: Job) -> Cause | None:
    """Why no run may begin now; None where one may. One that is only watched waits for nothing but the end of
    a reset that is being done: it would begin in the middle of it.
    """
    own = chips.chips_of(state, job)
    for reset in state.all(Reset):
        if reset.has_ended or reset.mode is ResetMode.DRY_RUN or own.isdisjoint(reset.members):
            continue
        if reset.stage is ResetStage.RUNNING or not job.policy.only_watches:
            chip_id = next(each for each in reset.members if each in own)
            return _for_reset(state, reset, chip_id, next(iter(reset.codes), ""))
    if job.policy.only_watches:
        return None
    for device, said in _contributions(state, job):
        is_barred = said.stance[1] in _STOPS or said.stance[0] is Verdict.ISOLATE
        if is_barred and not _of_the_job(state, said):
            return _away(device, said)
    return _of_rule(state, job)


def _of_rule(state: State, job: Job) -> Cause | None:
    """One of its chips is about to be taken out for what came again and again, unless others turn out to show
    the same: a run would only begin to be ended.
    """
    for device in job_views.concerned(state, chips.used_by(state, job)):
        for promotion in state.on(Promotion, device.id):
            if not promotion.effective and promotion.level in SEPARATING_LEVELS:
                level = f"{promotion.level} by the rule {promotion.rule}"
                why = f"{device.name}: {promotion.code} may come to {level}"
                return Cause(why=why, code=promotion.code, device_id=device.id)
    return None


# ---------------------------------------------------------------------- what counts


def _to_be_done(state: State) -> Iterator[Reset]:
    """Those in progress that nobody has yet to approve, and that are not on paper."""
    for reset in state.all(Reset):
        approved = reset.mode is ResetMode.ON or (reset.mode is ResetMode.ASK and reset.approved)
        if approved and not reset.has_ended:
            yield reset


def _contributions(state: State, job: Job) -> Iterator[tuple[Device, Contribution]]:
    for device in job_views.concerned(state, chips.used_by(state, job)):
        for said in contributions(state, device):
            yield device, said


def _of_the_job(state: State, said: Contribution) -> bool:
    condition = state.get(Condition, said.reason.id) if said.reason.kind == "condition" else None
    return condition is not None and recovery_action.only_restarts_its_job(state, condition)


def _counts(state: State, job: Job, said: Contribution) -> bool:
    condition = state.get(Condition, said.reason.id) if said.reason.kind == "condition" else None
    if condition is None or not recovery_action.only_restarts_its_job(state, condition):
        return True
    return condition.occurred_ns > job.granted_ns


def _is_heard(state: State, said: Contribution) -> bool:
    """Since the tables were last changed."""
    if said.reason.kind == "condition":
        condition = state.get(Condition, said.reason.id)
        return condition is not None and condition.heard_ns > state.era.catalog_ns
    promotion = state.get(Promotion, said.reason.id)
    return promotion is not None and promotion.fired_ns > state.era.catalog_ns
