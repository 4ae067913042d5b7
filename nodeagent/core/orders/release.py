"""A person's release of a device: what it ends, and whether the device may go back into service.

It ends the owner's isolations, the device's promotions, and what only a person may clear; or one by its id.
"""

from nodeagent.core.devices import registry
from nodeagent.core.faults import closing
from nodeagent.core.model import NODE, Condition, Device, HoldKind, Level, Operator, Promotion
from nodeagent.core.orders import answers, holds
from nodeagent.core.orders.answers import Answered
from nodeagent.core.resets import switched_off
from nodeagent.core.rules import promotions
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.judge import PRECEDENCE
from nodeagent.core.verdicts.observed import unobserved_reason

_FAULTY = PRECEDENCE[Level.RESTART_NPU]


def release(state: State, given: Operator) -> Answered:
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    if given.only and given.only not in (there := _on(state, device)):
        named = ", ".join(there) or "nothing"
        return answers.unknown(f"id: {given.only!r} is not on {device.name}; there is: {named}")
    if given.only_if_well and (why := _unwell(state, device)):
        by_reset, setting = switched_off.of_its_faults(state, device)
        return answers.not_possible(f"{device.name} {why}, or use --force{by_reset}", setting)
    ended = holds.lift(state, device, HoldKind.ISOLATION, given)
    why = f"released by {holds.said_by(given)}"
    for promotion in state.on(Promotion, device.id):
        if given.only in ("", promotion.id):
            promotions.release(state, promotion, why)
            ended.append(promotion.id)
    for condition in state.on(Condition, device.id):
        if given.only in ("", condition.id) and _is_for_a_person(state, condition):
            closing.close(state, condition, why)
            ended.append(condition.id)
    if ended:
        return answers.accepted(*ended)
    by_reset, setting = switched_off.of_its_faults(state, device)
    return answers.not_possible(f"{_why_nothing(state, device, given)}{by_reset}", setting)


def _on(state: State, device: Device) -> list[str]:
    """The ids of what a release may name."""
    isolations = (hold.id for hold in holds.of_kind(state, device, HoldKind.ISOLATION))
    promotions = (promotion.id for promotion in state.on(Promotion, device.id))
    conditions = (condition.id for condition in state.on(Condition, device.id))
    return [*isolations, *promotions, *conditions]


def _unwell(state: State, device: Device) -> str:
    """Why it cannot go back into service, and what would help; "" where it is seen to be well.

    What only a person may clear does not count: the release is about that. Nor does it count that the node is
    not observed: a hold on it is about something else, and without that hold it is still UNKNOWN.
    """
    faults = [
        f"{condition.code} at {condition.level}"
        for condition in state.on(Condition, device.id)
        if condition.affect_verdict
        and not condition.user_induced
        and PRECEDENCE[condition.level] >= _FAULTY
        and not _is_for_a_person(state, condition)
    ]
    is_observed = device.name == NODE or unobserved_reason(state, device) is None
    if not faults:
        return "" if is_observed else "is not observed; wait until it is"
    also = "" if is_observed else ", and is not observed"
    return f"is still faulty: {', '.join(faults)}{also}; clear it first"


def _is_for_a_person(state: State, condition: Condition) -> bool:
    return state.lookup.facts(condition.code).clear_on.operator


def _why_nothing(state: State, device: Device, given: Operator) -> str:
    if isolations := holds.of_kind(state, device, HoldKind.ISOLATION):
        return holds.not_yours(f"{device.name} is isolated", given, isolations)
    if pending := holds.of_kind(state, device, HoldKind.RESET_PENDING):
        return f"{device.name}: {pending[0].reason}; to stop it, refuse that action"
    return f"there is nothing to release on {device.name}"
