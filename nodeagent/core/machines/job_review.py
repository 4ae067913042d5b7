"""What becomes of each supervised job after any change: it is granted, asked to stop, kept waiting, or sent
away.

A job is reviewed whenever a device, a reset, a hold, a process or a claim has changed, and when the time of
its stage is over. A job whose policy allows nothing is only watched: it is granted whatever its chips are,
unless they are being reset. A job is asked to stop for a reset only while nothing else is in its way, and
waits for it only that long. A fault that restarts its job counts for the run that it hit and for no later
one: the next run begins at once. If the fault stays, its level asks for more in its time. What only a reload
of the tables brought up asks no job to stop.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.levels import PRECEDENCE, SEPARATING_LEVELS
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.judge import recovery_action
from nodeagent.core.judge.judge import contributions
from nodeagent.core.machines import (
    job_views,
    jobs,
    reset_blockers,
    reset_policy,
    reset_proposals,
    reset_refusal,
)
from nodeagent.core.machines.jobs import Cause
from nodeagent.core.machines.reset_blockers import ResetObstacle
from nodeagent.core.model import (
    Condition,
    Device,
    EventKind,
    Handling,
    Job,
    JobStage,
    Promotion,
    Reset,
    ResetMode,
    ResetStage,
    Verdict,
)
from nodeagent.core.state import deadlines, occupancy
from nodeagent.core.state.derived import Contribution
from nodeagent.core.state.state import EngineState

_STOPS = (Handling.RESCHEDULE, Handling.STOP_RESET_RESTART)
"""With any of these no run begins. After a fault that restarts the job the next run begins at once."""

_MAX_REASONS: Final = 3
"""So many obstacles a job's reason names; the reset has all of them."""


def review(state: EngineState) -> bool:
    """Look at every job that has not ended. True if that changed one."""
    changed = False
    for job in occupancy.live_jobs(state):
        move = _BY_STAGE.get(job.stage)
        changed = (move is not None and move(state, job)) or changed
    return changed


def due(state: EngineState, job: Job) -> None:
    """The time of its stage is over, or that for which its reset may be blocked."""
    if job.stage is JobStage.ENDED:
        state.drop(job)
    elif job.due_ns is None or state.moment_ns < job.due_ns:
        state.put(job)  # it is reviewed with this, and has the deadline of its stage left
    elif job.stage is JobStage.RUNNING:
        if (cause := _cause_of_leave(state, job)) is not None:
            jobs.send_away(state, job, _with_reason(cause, _obstacle(state, job, even_passing=True)))
    elif job.policy.only_watches:
        state.put(replace(job, due_ns=None))
    else:
        jobs.send_away(state, job, replace(_last(job), why=_why_too_late(state, job)))


def _why_too_late(state: EngineState, job: Job) -> str:
    settings = state.lookup.settings.jobs
    if job.stage is JobStage.ASKED:
        left = occupancy.left_of(state, job) if job.stopped else ""
        within = f"it did not stop within {settings.stop_timeout_ns // SECOND_NS} s"
        return f"{within}: {left}" if left else within
    cause = cause_of_wait(state, job)
    within = f"its chips were not well within {settings.heal_timeout_ns // SECOND_NS} s"
    reasons = ("" if cause is None else cause.why, _obstacle(state, job, even_passing=True))
    return f"{within}: {'; '.join(filter(None, reasons))}" if any(reasons) else within


def _last(job: Job) -> Cause:
    return Cause(why=job.why, code=job.code, device_id=job.device_id, reset_id=job.reset_id)


# ---------------------------------------------------------------------- by stage


def grant_if_well(state: EngineState, job: Job) -> bool:
    """Allow the run of one that waits, where nothing prevents it."""
    if cause_of_wait(state, job) is not None:
        return False
    if not job.policy.only_watches and (job.held or _cause_of_no_return(state, job) is not None):
        return False
    why = _obstacle(state, job) if _has_waited_in_vain(state, job) else job.why
    jobs.grant(state, replace(job, why=why))
    return True


def _holding(state: EngineState, job: Job) -> bool:
    noted = _note_obstacle(state, job)
    if grant_if_well(state, noted):
        return True
    if job.policy.only_watches:
        return _watch(state, noted, None)
    cause = _cause_of_no_return(state, noted)
    return (cause is not None and jobs.send_away(state, noted, cause)) or noted != job


def _running(state: EngineState, job: Job) -> bool:
    if job.policy.in_place and job.held:
        jobs.ask(state, job, Cause(why=job.why), by_operator=True, held=True)
        return True
    if job.policy.in_place and (cause := cause_of_stop(state, job)) is not None:
        jobs.ask(state, job, cause)
        return True
    away = _cause_of_leave(state, job) if job.policy.reschedules else None
    if away is None:
        return _watch(state, job, None)
    if job.policy.in_place and (_is_awaited(state, job) or _own_reset(state, job) is not None):
        stop_ns = state.lookup.settings.jobs.stop_timeout_ns
        return _watch(state, job, state.moment_ns + stop_ns if job.due_ns is None else job.due_ns)
    return jobs.send_away(state, job, away)


def _watch(state: EngineState, job: Job, due_ns: int | None) -> bool:
    """It stays as it is until then: a reset that would help is waited for, but not for ever."""
    if job.due_ns == due_ns:
        return False
    state.put(replace(job, due_ns=due_ns))
    return True


def _asked(state: EngineState, job: Job) -> bool:
    if job.stopped and not occupancy.left_of(state, job):
        stopped = jobs.stop(state, job, job.run)
        if stopped is not None:
            why, evidence = f"nothing of run {job.run} is left", jobs.durations(stopped)
            if job.end is not None:
                why = jobs.text_of_end(job.end)
                evidence = {**jobs.evidence_of(job.end), **evidence}
            jobs.emit_event(state, EventKind.JOB_STOPPED, stopped, why, evidence, job.run)
        return True
    noted = _note_obstacle(state, job)
    cause = _cause_of_no_return(state, noted)
    return (cause is not None and jobs.send_away(state, noted, cause)) or noted != job


_BY_STAGE: Final[Mapping[JobStage, Callable[[EngineState, Job], bool]]] = {
    JobStage.HOLDING: _holding,
    JobStage.RUNNING: _running,
    JobStage.ASKED: _asked,
}


# ---------------------------------------------------------------------- why a job stops


def cause_of_stop(state: EngineState, job: Job) -> Cause | None:
    """Why it is to stop, so that it can be run again here; None where it is not."""
    return _awaited_own_reset(state, job) or _restart(state, job) or _neighbours_reset(state, job)


def _awaited_own_reset(state: EngineState, job: Job) -> Cause | None:
    """One that begins once the job has stopped, and others that stop for it."""
    cause = _own_reset(state, job)
    reset = None if cause is None else state.get(Reset, cause.reset_id)
    return cause if reset is not None and not _obstacles(state, reset) else None


def _own_reset(state: EngineState, job: Job) -> Cause | None:
    """A reset that will be done, for a fault of its own chip or by a person's order for that. One that waits
    for its chip to be free stops no job.
    """
    own = occupancy.chips_of(state, job)
    for reset in _to_be_done(state):
        for chip_id in reset.members:
            if chip_id not in own:
                continue
            asking = _asking_conditions(state, reset, chip_id)
            stopping = [each for each in asking if not reset_policy.waits_for_idle(state, each)]
            if stopping or (reset.who and chip_id == reset.asker_id):
                code = stopping[0].code if stopping else ""
                return _for_reset(state, reset, chip_id, code)
    return None


def _asking_conditions(state: EngineState, reset: Reset, chip_id: str) -> list[Condition]:
    if chip_id == reset.asker_id:
        return reset_blockers.asking_conditions(state, reset)
    return [each for each in state.on(Condition, chip_id) if reset_policy.asks(state, each)]


def _restart(state: EngineState, job: Job) -> Cause | None:
    """A fault after which the job is to be run again, and that is all."""
    for device, contribution in _contributions(state, job):
        if (
            job_views.handling_for(job.kind, contribution.stance[1]) is Handling.RESTART_JOB
            and _hit_this_run(state, job, contribution)
            and _is_new_since_reload(state, contribution)
        ):
            why = f"{device.name}: {contribution.reason.code} restarts the job"
            return Cause(why=why, code=contribution.reason.code, device_id=device.id)
    return None


def _neighbours_reset(state: EngineState, job: Job) -> Cause | None:
    """A reset of its chip for another's fault, which waits only for jobs that make way."""
    if not job.policy.yields:
        return None
    own = occupancy.chips_of(state, job)
    for reset in _to_be_done(state):
        if own.isdisjoint(reset.members) or not _waits_for_such_alone(state, reset):
            continue
        chip_id = next(each for each in reset.members if each in own)
        return _for_reset(state, reset, chip_id, next(iter(reset.codes), ""))
    return None


def _waits_for_such_alone(state: EngineState, reset: Reset) -> bool:
    """The job of the faulty chip stops first: no other job stops for a reset that may never start."""
    others = [job for job in _users_of(state, reset) if not occupancy.is_out_of_the_way(job)]
    if any(_own_reset(state, job) is not None for job in others):
        return False
    is_cool = state.moment_ns >= reset_blockers.cooled_ns(state, state.lookup.settings.reset)
    return is_cool and not _obstacles(state, reset)


def _obstacles(state: EngineState, reset: Reset) -> list[ResetObstacle]:
    """What is in its way, but for jobs that stop for it."""
    stopping = [job for job in _users_of(state, reset) if _stops_for(state, reset, job)]
    return reset_blockers.obstacles(state, reset, state.lookup.settings.reset, stopping)


def _users_of(state: EngineState, reset: Reset) -> list[Job]:
    """The supervised jobs on its members, each once."""
    found = (job for chip_id in reset.members for job in occupancy.supervised_on(state, chip_id))
    return list({job.name: job for job in found}.values())


def _stops_for(state: EngineState, reset: Reset, job: Job) -> bool:
    """Whether it has been asked to stop, or will be for this reset."""
    if job.stage is not JobStage.RUNNING or not job.policy.in_place:
        return job.stage is JobStage.ASKED
    own = None if job.policy.yields else _own_reset(state, job)
    return job.policy.yields or (own is not None and own.reset_id == reset.id)


def _for_reset(state: EngineState, reset: Reset, chip_id: str, code: str) -> Cause:
    whose = reset_blockers.names(state, reset.members)
    why = f"the reset of {whose} for {code or reset.reason or reset.who}"
    return Cause(why=why, code=code, device_id=chip_id, reset_id=reset.id)


# ---------------------------------------------------------------------- why it leaves


def _cause_of_leave(state: EngineState, job: Job) -> Cause | None:
    """Why a job that runs is to be run elsewhere: its handling is RESCHEDULE, and nothing here will help."""
    found = _contributions(state, job)
    return _worst(
        each for each in found if each[1].stance[1] is Handling.RESCHEDULE and _counts(state, job, each[1])
    )


def _cause_of_no_return(state: EngineState, job: Job) -> Cause | None:
    """Why one that has stopped, or is to, will not be run again here: no reset is about to help."""
    found = []
    for device, contribution in _contributions(state, job):
        is_out = contribution.stance[1] is Handling.RESCHEDULE or contribution.stance[0] is Verdict.ISOLATE
        if is_out and _counts(state, job, contribution) and not _is_helped(state, job, device, contribution):
            found.append((device, contribution))
    cause = _worst(found)
    return None if cause is None else _with_reason(cause, _why_no_reset(state, job, cause))


def _is_awaited(state: EngineState, job: Job) -> bool:
    """Whether a reset of one of its chips is to be expected, which is not proposed yet."""
    return any(
        reset_policy.is_awaited(state, state.device(each)) for each in sorted(occupancy.chips_of(state, job))
    )


def _is_helped(state: EngineState, job: Job, device: Device, contribution: Contribution) -> bool:
    if _of_the_job(state, contribution):
        return False
    if reset_proposals.is_of_reset(contribution.reason.id):
        return True
    condition = state.get(Condition, contribution.reason.id)
    whose = device if condition is None else state.device(condition.device_id)
    chip = state.chip_of(whose)
    covering = (reset for reset in _to_be_done(state) if chip.id in reset.members)
    covered = any(not _is_in_vain(state, job, reset) for reset in covering)
    return covered or reset_policy.is_awaited(state, chip)


def _worst(found: Iterable[tuple[Device, Contribution]]) -> Cause | None:
    """The reason that is the least likely to go away."""
    worst = max(
        found, key=lambda each: -1 if each[1].level is None else PRECEDENCE[each[1].level], default=None
    )
    return None if worst is None else _away(*worst)


def _away(device: Device, contribution: Contribution) -> Cause:
    what = contribution.reason.code or contribution.reason.text
    level = f" at {contribution.reason.level}" if contribution.reason.level else ""
    return Cause(why=f"{device.name}: {what}{level}", code=contribution.reason.code, device_id=device.id)


def _with_reason(cause: Cause, reason: str) -> Cause:
    return replace(cause, why=f"{cause.why}; {reason}") if reason else cause


def _why_no_reset(state: EngineState, job: Job, cause: Cause) -> str:
    """Why the reset for which it was asked to stop is not done; "" where it was asked for none."""
    if _has_waited_in_vain(state, job):
        return _obstacle(state, job)
    chip = state.get(Device, job.device_id)
    if not job.reset_id or chip is None or cause.device_id != chip.id:
        return ""
    reset = state.get(Reset, job.reset_id)
    if reset is not None and reset.has_ended:
        return f"its reset: {reset.result}"
    switched_off, _ = reset_refusal.why_switched_off(state.lookup.settings.reset, chip)
    return switched_off.partition(";")[0]


# ---------------------------------------------------------------------- a reset that does not begin


def _note_obstacle(state: EngineState, job: Job) -> Job:
    """Since when something that does not pass blocks a reset that it waits for."""
    is_blocked = not job.policy.only_watches and bool(_obstacle(state, job))
    blocked_ns = (state.moment_ns if job.blocked_ns is None else job.blocked_ns) if is_blocked else None
    if blocked_ns == job.blocked_ns:
        return job
    noted = replace(job, blocked_ns=blocked_ns)
    state.put(noted)
    return noted


def _obstacle(state: EngineState, job: Job, *, even_passing: bool = False) -> str:
    """What is in the way of a reset of its chips that would be done, and does not pass by itself; "" if
    nothing is. Jobs that stop for it are not.
    """
    own = occupancy.chips_of(state, job)
    for reset in _to_be_done(state):
        if not reset.is_pending or own.isdisjoint(reset.members):
            continue
        if found := [each.text for each in _obstacles(state, reset) if even_passing or not each.passes]:
            return f"its reset does not begin: {'; '.join(found[:_MAX_REASONS])}"
    return ""


def _has_waited_in_vain(state: EngineState, job: Job) -> bool:
    return job.blocked_ns is not None and state.moment_ns >= job.blocked_ns + deadlines.BLOCKED_NS


def _is_in_vain(state: EngineState, job: Job, reset: Reset) -> bool:
    """Whether the job waits for this reset no longer: it was blocked for too long."""
    return reset.is_pending and _has_waited_in_vain(state, job)


def _is_released(state: EngineState, job: Job, reset: Reset) -> bool:
    """Whether it may run although this reset is pending: it has run here before, and the reset is blocked by
    others. A job that has not begun stays away from its chips.
    """
    return job.run > 1 and _is_in_vain(state, job, reset)


# ---------------------------------------------------------------------- why it waits


def cause_of_wait(state: EngineState, job: Job) -> Cause | None:
    """Why no run may begin now; None where one may. One that is only watched waits for nothing but the end of
    a reset that is being done: it would begin in the middle of it.
    """
    own = occupancy.chips_of(state, job)
    for reset in state.all(Reset):
        if reset.has_ended or reset.mode is ResetMode.DRY_RUN or own.isdisjoint(reset.members):
            continue
        if _is_released(state, job, reset):
            continue
        if reset.stage is ResetStage.RUNNING or not job.policy.only_watches:
            chip_id = next(each for each in reset.members if each in own)
            return _for_reset(state, reset, chip_id, next(iter(reset.codes), ""))
    if job.policy.only_watches:
        return None
    for device, contribution in _contributions(state, job):
        is_barred = contribution.stance[1] in _STOPS or contribution.stance[0] is Verdict.ISOLATE
        if is_barred and not _of_the_job(state, contribution):
            return _away(device, contribution)
    return _of_rule(state, job)


def _of_rule(state: EngineState, job: Job) -> Cause | None:
    """One of its chips is about to be taken out for what came again and again, unless others turn out to show
    the same: a run would only begin to be ended.
    """
    for device in job_views.concerned(state, occupancy.used_by(state, job)):
        for promotion in state.on(Promotion, device.id):
            if not promotion.effective and promotion.level in SEPARATING_LEVELS:
                level = f"{promotion.level} by the rule {promotion.rule}"
                why = f"{device.name}: {promotion.code} may come to {level}"
                return Cause(why=why, code=promotion.code, device_id=device.id)
    return None


# ---------------------------------------------------------------------- what counts


def _to_be_done(state: EngineState) -> Iterator[Reset]:
    """Those in progress that need no further approval, and are no dry runs."""
    for reset in state.all(Reset):
        approved = reset.mode is ResetMode.ON or (reset.mode is ResetMode.ASK and reset.approved)
        if approved and not reset.has_ended:
            yield reset


def _contributions(state: EngineState, job: Job) -> Iterator[tuple[Device, Contribution]]:
    for device in job_views.concerned(state, occupancy.used_by(state, job)):
        for contribution in contributions(state, device):
            reset = state.get(Reset, reset_proposals.reset_of(contribution.reason.id))
            if reset is None or not _is_released(state, job, reset):
                yield device, contribution


def _of_the_job(state: EngineState, contribution: Contribution) -> bool:
    condition = _condition_of(state, contribution)
    return condition is not None and recovery_action.only_restarts_its_job(state, condition)


def _counts(state: EngineState, job: Job, contribution: Contribution) -> bool:
    condition = _condition_of(state, contribution)
    if condition is None or not recovery_action.only_restarts_its_job(state, condition):
        return True
    return _hit_this_run(state, job, contribution)


def _hit_this_run(state: EngineState, job: Job, contribution: Contribution) -> bool:
    """Whether it came after the run was allowed: what a run begins with has restarted an earlier one."""
    if contribution.reason.kind == "promotion":
        promotion = state.get(Promotion, contribution.reason.id)
        return promotion is not None and promotion.fired_ns > job.granted_ns
    condition = _condition_of(state, contribution)
    return condition is not None and condition.occurred_ns > job.granted_ns


def _condition_of(state: EngineState, contribution: Contribution) -> Condition | None:
    reason = contribution.reason
    return state.get(Condition, reason.id) if reason.kind == "condition" else None


def _is_new_since_reload(state: EngineState, contribution: Contribution) -> bool:
    """Whether it was reported since the tables were last changed."""
    if contribution.reason.kind == "condition":
        condition = _condition_of(state, contribution)
        return condition is not None and condition.presence.heard_ns > state.era.catalog_ns
    promotion = state.get(Promotion, contribution.reason.id)
    return promotion is not None and promotion.fired_ns > state.era.catalog_ns
