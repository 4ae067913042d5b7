"""Orders of operators by their verb, and the answer to each: release, forget, approve, refuse, stop and rerun
a job, and those of ``holds`` and ``devices``.

A release ends the owner's isolations, the device's promotions, and what only a person may clear; or one of
these by its id. An order about a reset names it by its id, or by a device of it. A job that an operator has
stopped stays so until an operator runs it again, or its supervisor leaves; only a job whose policy allows it
is stopped.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.faults import ending
from nodeagent.core.judge.observed import unobserved_reason
from nodeagent.core.machines import (
    devices,
    holds,
    job_review,
    jobs,
    reset_blockers,
    reset_proposals,
    reset_refusal,
)
from nodeagent.core.machines.jobs import Cause
from nodeagent.core.machines.reset_refusal import ReasonAndKey
from nodeagent.core.model import (
    NODE,
    Claimed,
    Condition,
    Device,
    HoldKind,
    Job,
    JobStage,
    Level,
    Operator,
    Promotion,
    Reset,
    ResetMode,
)
from nodeagent.core.rules import frequency
from nodeagent.core.state import answers, occupancy, registry
from nodeagent.core.state.answers import Answered
from nodeagent.core.state.state import EngineState

_FAULTY: Final = PRECEDENCE[Level.RESTART_NPU]
"""A device with a fault of this level or worse is not released unless by force."""

_MOST_SHOWN: Final = 256
"""The most characters of a name or id in an order that its answer repeats."""


def ordered(state: EngineState, given: Operator) -> Answered:
    verb = _VERBS.get(given.what)
    return answers.unknown(f"{given.what!r} is no order") if verb is None else verb(state, given)


# ---------------------------------------------------------------------- devices


def _release(state: EngineState, given: Operator) -> Answered:
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    if given.only and given.only not in (there := _on(state, device)):
        named = ", ".join(there) or "nothing"
        return answers.unknown(f"id: {given.only!r} is not on {device.name}; there is: {named}")
    if given.only_if_well and (why := _unwell(state, device)):
        by_reset, setting = reset_refusal.why_switched_off_for_faults(state, device)
        return answers.not_possible(f"{device.name} {why}, or use --force{by_reset}", setting)
    ended = holds.lift(state, device, HoldKind.ISOLATION, given)
    why = f"released by {holds.caller_text(given)}"
    for promotion in state.on(Promotion, device.id):
        if given.only in ("", promotion.id):
            frequency.release(state, promotion, why)
            ended.append(promotion.id)
    for condition in state.on(Condition, device.id):
        if given.only in ("", condition.id) and _is_for_a_person(state, condition):
            ending.close(state, condition, why)
            ended.append(condition.id)
    if ended:
        return answers.accepted(*ended)
    by_reset, setting = reset_refusal.why_switched_off_for_faults(state, device)
    return answers.not_possible(f"{_why_nothing(state, device, given)}{by_reset}", setting)


def _on(state: EngineState, device: Device) -> list[str]:
    """The ids of what a release may name."""
    isolations = (hold.id for hold in holds.of_kind(state, device, HoldKind.ISOLATION))
    promotions = (promotion.id for promotion in state.on(Promotion, device.id))
    conditions = (condition.id for condition in state.on(Condition, device.id))
    return [*isolations, *promotions, *conditions]


def _unwell(state: EngineState, device: Device) -> str:
    """Why it cannot go back into service, and what would help; "" where it is seen to be well.

    What only a person may clear does not count: the release is about that. Nor does it count that the node is
    not observed: a hold on it is about something else, and without that hold it is still UNKNOWN.
    """
    faults = [
        f"{condition.code} at {condition.level}"
        for condition in state.on(Condition, device.id)
        if condition.grade.affect_verdict
        and not condition.grade.user_induced
        and PRECEDENCE[condition.level] >= _FAULTY
        and not _is_for_a_person(state, condition)
    ]
    is_observed = device.name == NODE or unobserved_reason(state, device) is None
    if not faults:
        return "" if is_observed else "is not observed; wait until it is"
    also = "" if is_observed else ", and is not observed"
    return f"is still faulty: {', '.join(faults)}{also}; clear it first"


def _is_for_a_person(state: EngineState, condition: Condition) -> bool:
    return state.lookup.facts(condition.code).clear_on.operator


def _why_nothing(state: EngineState, device: Device, given: Operator) -> str:
    if isolations := holds.of_kind(state, device, HoldKind.ISOLATION):
        return holds.not_yours(f"{device.name} is isolated", given, isolations)
    if pending := holds.of_kind(state, device, HoldKind.RESET_PENDING):
        stops = f"nodeagent approve {device.name} --refuse --reason WHY"
        return f"{device.name}: {pending[0].reason}; to stop it: {stops}"
    return f"there is nothing to release on {device.name}"


def _forget(state: EngineState, given: Operator) -> Answered:
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    if why := _why_not_forgotten(state, device, given):
        return answers.not_possible(why)
    devices.forget_by_order(state, device, holds.caller_text(given))
    return answers.accepted(device.id)


def _why_not_forgotten(state: EngineState, device: Device, given: Operator) -> str:
    """Why it stays, and what to do; "" where it is forgotten."""
    if device.id == state.node_id:
        return "the node itself cannot be forgotten"
    if chip := device.traits.chip_id:
        return f"{device.name} is a part of {state.device(chip).name} and is forgotten with it"
    if device.source and not device.gone:
        return f"the driver {device.source} lists {device.name}; take the device out first"
    if reset_blockers.is_in_its_slot(state, device):
        return (
            f"{device.name} is still in its slot, as the fault device_lost shows; take the device out first"
        )
    if (reset := reset_blockers.covering(state, [device.id])) is not None:
        return f"{reset.id} of {reset_blockers.names(state, reset.members)} is in progress ({reset.stage})"
    if given.force:
        return ""
    if (claimed := state.get(Claimed, device.id)) is not None:
        names = ", ".join(job for job, _ in claimed.jobs)
        return f"{device.name} is claimed by {names}; release the claim, or use --force"
    isolations = holds.of_kind(state, device, HoldKind.ISOLATION)
    others = [hold for hold in isolations if hold.owner not in (given.owner, given.who)]
    return holds.not_yours(f"{device.name} is isolated", given, others) if others else ""


# ---------------------------------------------------------------------- jobs


def _stop_job(state: EngineState, given: Operator) -> Answered:
    job = _job_named(state, given)
    if not isinstance(job, Job):
        return job
    if job.held:
        return answers.not_possible(f"job: {job.name} is stopped by an operator already: {job.why}")
    if why := _why_not_of_job(job):
        return answers.not_possible(why)
    cause = Cause(why=f"stopped by {holds.caller_text(given)}")
    if job.stage is JobStage.RUNNING:
        jobs.ask(state, job, cause, by_operator=True, held=True)
        return answers.accepted(job.name)
    due_ns = None if job.stage is JobStage.HOLDING else job.due_ns
    state.put(replace(job, by_operator=True, held=True, why=cause.why, due_ns=due_ns))
    return answers.accepted(job.name)


def _rerun_job(state: EngineState, given: Operator) -> Answered:
    job = _job_named(state, given)
    if not isinstance(job, Job):
        return job
    if why := _why_not_of_job(job):
        return answers.not_possible(why)
    why = f"run again by {holds.caller_text(given)}"
    if job.stage is JobStage.RUNNING:
        jobs.ask(state, job, Cause(why=why), by_operator=True)
        return answers.accepted(job.name)
    if not job.held:
        return answers.not_possible(f"job: {job.name} {_awaits(state, job)}")
    due_ns = job.due_ns
    if job.stage is JobStage.HOLDING:
        due_ns = state.moment_ns + state.lookup.settings.jobs.heal_timeout_ns
    state.put(replace(job, held=False, why=why, due_ns=due_ns))
    return answers.accepted(job.name)


def _awaits(state: EngineState, job: Job) -> str:
    """What it waits for, though no operator has stopped it."""
    if job.stage is JobStage.ASKED:
        return f"is asked to stop already, and is run again then: {job.why}"
    cause = job_review.cause_of_wait(state, job)
    return "waits for its chips, and is run then" + (f": {cause.why}" if cause is not None else "")


def _job_named(state: EngineState, given: Operator) -> Job | Answered:
    there = occupancy.live_jobs(state)
    found = next((job for job in there if job.name == given.only), None)
    if found is not None:
        return found
    names = ", ".join(job.name for job in there) or "none"
    return answers.unknown(
        f"job: {given.only[:_MOST_SHOWN]!r} is not supervised on this node; there are: {names}"
    )


def _why_not_of_job(job: Job) -> str:
    if job.stage is JobStage.LEAVING:
        return f"job: {job.name} is leaving this node: {job.why}"
    if not job.policy.in_place:
        return f"job: {job.name} may not be stopped and run again by its policy; end it by its scheduler"
    return ""


# ---------------------------------------------------------------------- resets


def _reset(state: EngineState, given: Operator) -> Answered:
    """A person asks for it: the same steps, without a fault."""
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    why, setting = reset_refusal.why_refused(state, device, given.once)
    if why:
        return answers.not_possible(why, setting)
    return answers.accepted(reset_proposals.ordered(state, device, given).id)


def _approve(state: EngineState, given: Operator) -> Answered:
    reset = _pending_reset(state, given.device)
    if not isinstance(reset, Reset):
        return reset
    if reset.mode is not ResetMode.ASK:
        why = f"needs no approval: its mode is {reset.mode}, and only mode ask waits for one"
        asker = None if reset.once else state.get(Device, reset.asker_id)
        off, setting = _if_switched_off(state, asker)
        return answers.not_possible(f"action_id: {reset.id} {why}{off}", setting)
    if not reset_proposals.approve(state, reset, holds.caller_text(given)):
        return answers.not_possible(f"action_id: {reset.id} is approved already")
    return answers.accepted(reset.id)


def _refuse(state: EngineState, given: Operator) -> Answered:
    reset = _pending_reset(state, given.device)
    if not isinstance(reset, Reset):
        return reset
    reset_proposals.refuse(state, reset, f"refused by {holds.caller_text(given)}")
    return answers.accepted(reset.id)


def _pending_reset(state: EngineState, wanted: str) -> Reset | Answered:
    """The reset of that id, or the one that is pending on that device; or why there is none."""
    if (named := state.get(Reset, wanted)) is not None:
        if named.is_pending:
            return named
        moved_on = f"has ended: {named.result}" if named.has_ended else f"is {named.stage}"
        return answers.not_possible(f"action_id: {named.id} {moved_on}")
    device = registry.find(state, wanted)
    pending = [reset for reset in state.all(Reset) if reset.is_pending]
    found = [reset for reset in pending if device is not None and device.id in reset.members]
    if len(found) == 1:
        return found[0]
    shown = repr(wanted[:_MOST_SHOWN])
    if device is None:
        problem = f"{shown} is not known"
    else:
        problem = f"{'several resets are' if found else 'no reset is'} pending on {shown}"
    there = ", ".join(reset.id for reset in found or pending) or "none"
    off, setting = reset_refusal.NOTHING if found else _if_switched_off(state, device)
    return answers.unknown(f"action_id: {problem}; pending: {there}{off}", setting)


def _if_switched_off(state: EngineState, device: Device | None) -> ReasonAndKey:
    """That resets of it are switched off, if they are, as an addition to another text."""
    if device is None or not reset_refusal.can_be_ordered(device):
        return reset_refusal.NOTHING
    why, setting = reset_refusal.why_switched_off(state.lookup.settings.reset, device)
    return (f"; {why}", setting) if why else reset_refusal.NOTHING


_VERBS: Final[dict[str, Callable[[EngineState, Operator], Answered]]] = {
    "isolate": holds.isolate,
    "release": _release,
    "forget": _forget,
    "rebaseline": devices.rebaseline,
    "approve": _approve,
    "refuse": _refuse,
    "reset": _reset,
    "quiesce": holds.quiesce,
    "resume": holds.resume,
    "stop_job": _stop_job,
    "rerun_job": _rerun_job,
}
