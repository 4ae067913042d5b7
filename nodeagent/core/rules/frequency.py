"""The frequency rule: repetition promotes; a promotion outlives its fault until it is released.

Occurrences come from whatever sees one (a signal, a duration's time-out) and are counted in ``windows``. What
several chips show at once is handled in ``correlation``.
"""

from dataclasses import replace

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.levels import PRECEDENCE, SEPARATING_LEVELS
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.judge import recovery_action
from nodeagent.core.judge.events import emit
from nodeagent.core.model import (
    Belief,
    Condition,
    CountedBy,
    Device,
    EventKind,
    Level,
    Presence,
    Promotion,
    Window,
)
from nodeagent.core.rules import correlation, windows
from nodeagent.core.rules.kind import RuleKind
from nodeagent.core.state import deadlines, limits, occupancy
from nodeagent.core.state.cells import changed
from nodeagent.core.state.state import EngineState


def occurred(state: EngineState, condition: Condition, at_ns: int, occurrences: int = 1) -> None:
    """Its fault occurred: count it, and promote where its rule is met. A kernel line alone counts nothing."""
    if condition.origin.injected or condition.backing.belief is not Belief.OWN:
        return
    device = state.device(condition.device_id)
    facts = state.lookup.facts(condition.code)
    rule = state.lookup.frequency_rule(facts, device.kind)
    if rule is None:
        return
    if rule.at_least is not None and PRECEDENCE[condition.level] < PRECEDENCE[rule.at_least]:
        return
    if recovery_action.chip_needs_no_recovery(state, condition):
        return
    by_device = rule.counted_by is CountedBy.DEVICE
    if by_device and condition.grade.user_induced and not occupancy.is_free(state, device.id):
        return
    if rule.in_use and occupancy.is_idle(state, device.id):
        return
    if rule.correlation_ns:
        correlation.sight(state, device.id, facts.key, rule, at_ns)
    promoted = _promotion(state, device.id, rule, facts)
    if promoted is None:
        _count(state, device, condition, rule, at_ns, occurrences)
    elif by_device:
        # By job or place: whether this is one of the occurrences that promoted is not known.
        _keep_alive(state, promoted, condition.presence, at_ns)
    if rule.correlation_ns:
        correlation.review(state, device.id, facts.key, rule, at_ns)


def _promotion(state: EngineState, device_id: str, rule: FrequencyRule, facts: Facts) -> Promotion | None:
    for promotion in state.promotions(device_id, facts.key):
        if promotion.rule == rule.id:
            return promotion
    return None


def _count(
    state: EngineState,
    device: Device,
    condition: Condition,
    rule: FrequencyRule,
    at_ns: int,
    occurrences: int,
) -> None:
    window, fired = windows.add(state, rule, condition, condition.source, at_ns, occurrences)
    if not fired:
        return
    if rule.counted_by is CountedBy.DEVICE:
        limits.remember(state, replace(window, occurrences_ns=()))
        _fire(state, device, condition, rule, at_ns, window.occurrences_ns)
    else:
        # What fires stays counted until it takes effect: others may yet show that it was the job's.
        _fire(state, device, condition, rule, at_ns, ())


def _fire(
    state: EngineState,
    device: Device,
    condition: Condition,
    rule: FrequencyRule,
    at_ns: int,
    occurrences_ns: tuple[int, ...],
) -> None:
    if not _has_room(state, device, rule.level):
        state.overflow = f"a promotion of {condition.code} on {device.name} is one too many"
        return
    promotion = Promotion(
        id=limits.next_id(state, Promotion, device.id, rule.id, limits.number_of_rule(rule.id)),
        device_id=device.id,
        rule=rule.id,
        code=condition.code,
        name=condition.name,
        source=condition.source,
        level=rule.level,
        fired_ns=at_ns,
        effective=False,
        occurrences_ns=occurrences_ns,
        quiet_since_ns=at_ns if condition.presence.present_ns is None else None,
    )
    # What comes late may come later still from others, and of devices that were not named yet.
    reported_late = at_ns < state.moment_ns
    if rule.correlation_ns and (reported_late or correlation.has_siblings(state, device)):
        state.put(promotion)
    else:
        _take_effect(state, promotion)


def _has_room(state: EngineState, device: Device, level: Level) -> bool:
    """Whether there is room for a promotion by now, as for a condition."""
    if limits.room_for_promotion(state):
        return True
    mildest = limits.mildest(state, state.all(Promotion), (True, PRECEDENCE[level], device.seen, True))
    if mildest is not None:
        release(state, mildest, limits.MADE_WAY)
    return mildest is not None


def _take_effect(state: EngineState, promotion: Promotion) -> None:
    effective = replace(promotion, effective=True, occurrences_ns=(), level_since_ns=state.moment_ns)
    rule = state.lookup.frequency_by_id(promotion.rule)
    why = f"{rule.times} times within the time window of rule {rule.id}" if rule else ""
    if _is_one_too_many(state, promotion):
        effective = replace(effective, level=Level.PRE_SEPARATE_NPU, capped=True)
        most = state.lookup.settings.max_isolated_chips
        why += f"; not {promotion.level}: repetition isolates {most} chips here at most"
    state.put(effective)
    _empty_of_attributed(state, effective)
    emit(state, EventKind.PROMOTED, state.device(promotion.device_id), about=effective, why=why)


def _empty_of_attributed(state: EngineState, promotion: Promotion) -> None:
    """What has taken effect is not counted again."""
    key = state.lookup.facts(promotion.code).key
    window = state.get(Window, promotion.device_id, key, promotion.rule)
    if window is not None and window.attributed:
        limits.remember(state, replace(window, attributed=()))


def _is_one_too_many(state: EngineState, promotion: Promotion) -> bool:
    """Whether it would isolate a chip beyond those that repetition may: its cause is hardly the chip's."""
    most = state.lookup.settings.max_isolated_chips
    if not most or promotion.level not in SEPARATING_LEVELS:
        return False
    isolated = {
        other.device_id
        for other in state.all(Promotion)
        if other.effective and other.level in SEPARATING_LEVELS and other.device_id != promotion.device_id
    }
    return len(isolated) >= most


def _keep_alive(state: EngineState, promotion: Promotion, presence: Presence, at_ns: int) -> None:
    quiet_since_ns = None
    if presence.present_ns is None:
        quiet_since_ns = max(at_ns, promotion.quiet_since_ns or at_ns)
    if quiet_since_ns != promotion.quiet_since_ns:
        state.put(changed(promotion, quiet_since_ns=quiet_since_ns))


def present(state: EngineState, condition: Condition) -> None:
    """The fault is there, counted or not: its promotions are not quiet. With a duration rule it must last."""
    if state.lookup.facts(condition.code).duration is not None and not condition.presence.judged:
        return
    for promotion in _promotions_of(state, condition):
        if promotion.quiet_since_ns is not None:
            state.put(replace(promotion, quiet_since_ns=None))


def recovered(state: EngineState, condition: Condition, at_ns: int) -> None:
    """The fault is no longer present: the quiet time of its promotions begins, unless another system reports
    the same.
    """
    for promotion in _promotions_of(state, condition):
        if promotion.quiet_since_ns is None and not _is_shown_by_another(state, condition):
            state.put(replace(promotion, quiet_since_ns=at_ns))


def _is_shown_by_another(state: EngineState, condition: Condition) -> bool:
    key = state.lookup.facts(condition.code).key
    return any(
        other.id != condition.id
        and other.presence.present_ns is not None
        and not other.origin.injected
        and state.lookup.facts(other.code).key == key
        for other in state.on(Condition, condition.device_id)
    )


def _promotions_of(state: EngineState, condition: Condition) -> list[Promotion]:
    if condition.origin.injected:
        return []
    return state.promotions(condition.device_id, state.lookup.facts(condition.code).key)


def counts_by_device(state: EngineState, condition: Condition) -> bool:
    """Whether occurrences of its fault count whatever job they belong to."""
    device = state.device(condition.device_id)
    rule = state.lookup.frequency_rule(state.lookup.facts(condition.code), device.kind)
    return rule is None or rule.counted_by is CountedBy.DEVICE


def due(state: EngineState, promotion: Promotion) -> None:
    """The promotion's deadline: it takes effect uncorrelated, its quiet time is over, or its phase is."""
    rule = state.lookup.frequency_by_id(promotion.rule)
    release_ns = deadlines.release_ns(rule, promotion) if rule is not None else None
    if not promotion.effective:
        _take_effect(state, promotion)
    elif release_ns is not None and release_ns <= state.moment_ns:
        release(state, promotion, "quiet for the rule's release time")
    else:
        state.put(promotion.in_next_phase())


def release(state: EngineState, promotion: Promotion, why: str) -> None:
    """End it. One that had not taken effect was never published, and ends without an event."""
    state.drop(promotion)
    if promotion.effective:
        emit(state, EventKind.RELEASED, state.device(promotion.device_id), about=promotion, why=why)


def requeue(state: EngineState, promotion: Promotion) -> None:
    """It has not taken effect: what fired it is counted again."""
    state.drop(promotion)
    key = state.lookup.facts(promotion.code).key
    window = windows.window_of(state, promotion.device_id, key, promotion.rule)
    times = tuple(sorted((*promotion.occurrences_ns, *window.occurrences_ns)))
    limits.remember(state, replace(window, occurrences_ns=times))


def uncount(state: EngineState, condition: Condition, around_ns: int, within_ns: int) -> None:
    """Take back what was counted of the condition's fault near a time: those occurrences were another's.

    What they have already promoted stays.
    """
    key = state.lookup.facts(condition.code).key
    for window in state.all(Window):
        if window.device_id != condition.device_id or window.code != key:
            continue
        kept = tuple(at_ns for at_ns in window.occurrences_ns if abs(at_ns - around_ns) > within_ns)
        left = windows.without_near(window, around_ns, within_ns)
        if (kept, left) != (window.occurrences_ns, window.attributed):
            after = replace(window, occurrences_ns=kept, attributed=left, burst_last_ns=None)
            limits.remember(state, after)


def process_named(state: EngineState, condition: Condition, at_ns: int, within_ns: int) -> None:
    """A line names the process that the application fault hit: what another source reported of it was
    counted as on a free device, and is taken back, but for what has taken effect.
    """
    for promotion in _promotions_of(state, condition):
        if not promotion.effective:
            requeue(state, promotion)
    uncount(state, condition, at_ns, within_ns)


KIND = RuleKind(name="frequency", occurred=occurred, present=present, recovered=recovered)
