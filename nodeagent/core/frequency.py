"""The frequency rule: repetition promotes; a promotion outlives its fault until it is released.

An occurrence is told to ``occurred`` by whoever sees one (a signal, a duration's time-out). The
sliding window is ``count``, a pure function. What several chips show at once is ``correlation``'s.
"""

from bisect import insort
from dataclasses import replace

from nodeagent.core import attributed, attribution, correlation, deadlines, holding, limits, recovery, room
from nodeagent.core.catalog import SECOND_NS, FrequencyRule
from nodeagent.core.cells import changed
from nodeagent.core.lookup import Facts
from nodeagent.core.model import (
    Backing,
    Condition,
    CountedBy,
    Device,
    EventKind,
    Level,
    Promotion,
    Window,
)
from nodeagent.core.state import State
from nodeagent.core.telling import tell
from nodeagent.core.verdict import PRECEDENCE, SEPARATING_LEVELS

_BURST_NS = {"kmsg": 180 * SECOND_NS, "nvidia": 180 * SECOND_NS}
"""Sources that tell one fault in many lines, or that both tell it; what lies this close is one occurrence."""


def burst_ns(rule: FrequencyRule, source: str) -> int:
    return _BURST_NS.get(source, 0) if rule.burst_ns is None else rule.burst_ns


def count(
    window: Window, rule: FrequencyRule, at_ns: int, occurrences: int = 1, within_burst_ns: int = 0
) -> tuple[Window, bool]:
    """Add occurrences at ``at_ns``; true when ``times`` of them lie within the time window.

    One exactly a window old still counts. Within a burst only the first one does.
    """
    last_ns = window.burst_last_ns
    if within_burst_ns:
        if last_ns is not None and abs(at_ns - last_ns) <= within_burst_ns:
            return changed(window, burst_last_ns=max(last_ns, at_ns)), False
        last_ns = at_ns if last_ns is None else max(last_ns, at_ns)
        occurrences = 1
    times = list(window.occurrences_ns)
    for _ in range(max(1, min(occurrences, rule.times))):
        insort(times, at_ns)
    oldest_ns = times[-1] - rule.time_window_ns
    kept = [time_ns for time_ns in times if time_ns >= oldest_ns]
    after = changed(window, occurrences_ns=tuple(kept[-rule.times :]), burst_last_ns=last_ns)
    return after, len(kept) >= rule.times


def count_attributed(
    state: State, window: Window, rule: FrequencyRule, condition: Condition, at_ns: int, within_ns: int
) -> tuple[Window, bool]:
    """The same of a rule that counts by job or place, for what the condition's evidence tells of them."""
    evidence = condition.evidence
    job = attribution.job_of(state, condition.device_id, evidence)
    return attributed.count(window, rule, at_ns, job, evidence.get(attributed.PLACE, ""), within_ns)


def window_of(state: State, device_id: str, code_key: str, rule_id: str) -> Window:
    """What is counted so far, empty if nothing."""
    window = state.get(Window, device_id, code_key, rule_id)
    return window or Window(device_id=device_id, code=code_key, rule=rule_id)


def counts_by_device(state: State, condition: Condition) -> bool:
    """Whether occurrences of its fault count whosever they are."""
    device = state.device(condition.device_id)
    rule = state.lookup.frequency_rule(state.lookup.facts(condition.code), device.kind)
    return rule is None or rule.counted_by is CountedBy.DEVICE


def occurred(state: State, condition: Condition, at_ns: int, occurrences: int = 1) -> None:
    """Its fault occurred: count it, and promote where a rule says so. A kernel line alone counts nothing."""
    if condition.injected or condition.backing is not Backing.OWN:
        return
    device = state.device(condition.device_id)
    facts = state.lookup.facts(condition.code)
    rule = state.lookup.frequency_rule(facts, device.kind)
    if rule is None:
        return
    if rule.at_least is not None and PRECEDENCE[condition.level] < PRECEDENCE[rule.at_least]:
        return
    if recovery.blames_nobody(state, condition):
        return
    by_device = rule.counted_by is CountedBy.DEVICE
    if by_device and condition.user_induced and not holding.is_free(state, device.id):
        return
    if rule.in_use and holding.is_idle(state, device.id):
        return
    if rule.correlation_ns:
        correlation.sight(state, device.id, facts.key, rule, at_ns)
    standing = _standing(state, device.id, rule, facts)
    if standing is None:
        _count(state, device, condition, facts, rule, at_ns, occurrences)
    elif by_device:
        # Of the others nobody knows whether they are what was accused.
        _keep_alive(state, standing, condition, at_ns)
    if rule.correlation_ns:
        correlation.review(state, device.id, facts.key, rule, at_ns)


def _count(
    state: State,
    device: Device,
    condition: Condition,
    facts: Facts,
    rule: FrequencyRule,
    at_ns: int,
    occurrences: int,
) -> None:
    before = window_of(state, device.id, facts.key, rule.id)
    within_ns = burst_ns(rule, condition.source)
    if rule.counted_by is not CountedBy.DEVICE:
        window, fired = count_attributed(state, before, rule, condition, at_ns, within_ns)
        # What fires stays counted until it takes effect: others may yet show that it was the job's.
        limits.remember(state, window)
        if fired:
            _fire(state, device, condition, rule, at_ns, ())
        return
    window, fired = count(before, rule, at_ns, occurrences, within_ns)
    if fired:
        limits.remember(state, replace(window, occurrences_ns=()))
        _fire(state, device, condition, rule, at_ns, window.occurrences_ns)
    else:
        limits.remember(state, window)


def _fire(
    state: State,
    device: Device,
    condition: Condition,
    rule: FrequencyRule,
    at_ns: int,
    occurrences_ns: tuple[int, ...],
) -> None:
    if not room.for_promotion(state, device, rule.level):
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
        quiet_since_ns=at_ns if condition.present_ns is None else None,
    )
    # Of what is told late, others may tell later still, and of devices that nobody has named yet.
    told_late = at_ns < state.moment_ns
    if rule.correlation_ns and (told_late or correlation.has_siblings(state, device)):
        state.put(promotion)
    else:
        _take_effect(state, promotion)


def _take_effect(state: State, promotion: Promotion) -> None:
    effective = replace(promotion, effective=True, occurrences_ns=(), level_since_ns=state.moment_ns)
    rule = state.lookup.frequency_by_id(promotion.rule)
    why = f"{rule.times} times within the time window of rule {rule.id}" if rule else ""
    if _is_one_too_many(state, promotion):
        effective = replace(effective, level=Level.PRE_SEPARATE_NPU, capped=True)
        most = state.lookup.settings.max_isolated_chips
        why += f"; not {promotion.level}: repetition isolates {most} chips here at most"
    state.put(effective)
    _empty_of_attributed(state, effective)
    tell(state, EventKind.PROMOTED, state.device(promotion.device_id), about=effective, why=why)


def _empty_of_attributed(state: State, promotion: Promotion) -> None:
    """What has taken effect is not counted again."""
    key = state.lookup.facts(promotion.code).key
    window = state.get(Window, promotion.device_id, key, promotion.rule)
    if window is not None and window.attributed:
        limits.remember(state, replace(window, attributed=()))


def _is_one_too_many(state: State, promotion: Promotion) -> bool:
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


def _keep_alive(state: State, promotion: Promotion, condition: Condition, at_ns: int) -> None:
    quiet_since_ns = None
    if condition.present_ns is None:
        quiet_since_ns = max(at_ns, promotion.quiet_since_ns or at_ns)
    if quiet_since_ns != promotion.quiet_since_ns:
        state.put(changed(promotion, quiet_since_ns=quiet_since_ns))


def present(state: State, condition: Condition) -> None:
    """The fault is there, counted or not: its promotions are not quiet. With a duration rule it must last."""
    if state.lookup.facts(condition.code).duration is not None and not condition.judged:
        return
    for promotion in _of(state, condition):
        if promotion.quiet_since_ns is not None:
            state.put(replace(promotion, quiet_since_ns=None))


def recovered(state: State, condition: Condition, at_ns: int) -> None:
    """The fault is no longer present: the quiet time of its promotions begins."""
    for promotion in _of(state, condition):
        if promotion.quiet_since_ns is None:
            state.put(replace(promotion, quiet_since_ns=at_ns))


def uncount(state: State, condition: Condition, around_ns: int, within_ns: int) -> None:
    """Take back what was counted of the condition's fault near a time: those occurrences were another's.

    What they have already promoted stands.
    """
    key = state.lookup.facts(condition.code).key
    for window in state.all(Window):
        if window.device_id != condition.device_id or window.code != key:
            continue
        kept = tuple(at_ns for at_ns in window.occurrences_ns if abs(at_ns - around_ns) > within_ns)
        left = attributed.without(window, around_ns, within_ns)
        if (kept, left) != (window.occurrences_ns, window.attributed):
            after = replace(window, occurrences_ns=kept, attributed=left, burst_last_ns=None)
            limits.remember(state, after)


def was_held(state: State, condition: Condition, at_ns: int, within_ns: int) -> None:
    """A line names the process that the application's fault hit: what another source told of it was counted
    as on a free device, and is taken back, but for what has taken effect.
    """
    for promotion in _of(state, condition):
        if not promotion.effective:
            requeue(state, promotion)
    uncount(state, condition, at_ns, within_ns)


def due(state: State, promotion: Promotion) -> None:
    """The promotion's deadline: it takes effect uncorrelated, its quiet time is over, or its phase is."""
    rule = state.lookup.frequency_by_id(promotion.rule)
    release_ns = deadlines.release_ns(rule, promotion) if rule is not None else None
    if not promotion.effective:
        _take_effect(state, promotion)
    elif release_ns is not None and release_ns <= state.moment_ns:
        release(state, promotion, "quiet for the rule's release time")
    else:
        state.put(replace(promotion, phase=promotion.phase + 1))


def requeue(state: State, promotion: Promotion) -> None:
    """It has not taken effect: what fired it is counted again."""
    state.drop(promotion)
    key = state.lookup.facts(promotion.code).key
    window = window_of(state, promotion.device_id, key, promotion.rule)
    times = tuple(sorted((*promotion.occurrences_ns, *window.occurrences_ns)))
    limits.remember(state, replace(window, occurrences_ns=times))


def release(state: State, promotion: Promotion, why: str) -> None:
    """End it. One that had not taken effect was never told, and goes without a word."""
    state.drop(promotion)
    if promotion.effective:
        tell(state, EventKind.RELEASED, state.device(promotion.device_id), about=promotion, why=why)


def _of(state: State, condition: Condition) -> list[Promotion]:
    if condition.injected:
        return []
    return state.promotions(condition.device_id, state.lookup.facts(condition.code).key)


def _standing(state: State, device_id: str, rule: FrequencyRule, facts: Facts) -> Promotion | None:
    for promotion in state.promotions(device_id, facts.key):
        if promotion.rule == rule.id:
            return promotion
    return None
