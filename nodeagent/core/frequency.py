"""The frequency rule: repetition promotes; a promotion outlives its fault until it is released.

An occurrence is told to ``occurred`` by whoever sees one (a signal, a duration's time-out). The
sliding window is ``count``, a pure function. Correlation across chips is here too: a fault that
comes on several chips of a job at once is the job's, not a chip's.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import replace

from nodeagent.core.catalog import SECOND_NS, FrequencyRule, canonical
from nodeagent.core.model import (
    Condition,
    Device,
    EventKind,
    Held,
    Promotion,
    Sighting,
    Window,
)
from nodeagent.core.state import State
from nodeagent.core.telling import tell
from nodeagent.core.verdict import PRECEDENCE

_SIGHTINGS = 16
_DAY_NS = 24 * 3600 * SECOND_NS


def count(window: Window, rule: FrequencyRule, at_ns: int, occurrences: int = 1) -> tuple[Window, bool]:
    """Add occurrences at ``at_ns``; true when ``times`` of them lie within the time window.

    One exactly a window old still counts. Within a burst only the first one does.
    """
    if rule.burst_ns:
        last_ns = window.burst_last_ns
        if last_ns is not None and abs(at_ns - last_ns) <= rule.burst_ns:
            return replace(window, burst_last_ns=max(last_ns, at_ns)), False
        window = replace(window, burst_last_ns=max(last_ns or at_ns, at_ns))
        occurrences = 1
    times = list(window.occurrences_ns)
    for _ in range(min(occurrences, rule.times)):
        insort(times, at_ns)
    oldest_ns = times[-1] - rule.time_window_ns
    kept = tuple(time_ns for time_ns in times if time_ns >= oldest_ns)
    return replace(window, occurrences_ns=kept[-rule.times :]), len(kept) >= rule.times


def occurred(state: State, condition: Condition, at_ns: int, occurrences: int = 1) -> None:
    """The condition's fault occurred: count it, and promote where a rule says so."""
    device = state.device(condition.device_id)
    rule = state.lookup.frequency_rule(condition.code, device.kind)
    if rule is None or condition.injected:
        return
    if rule.at_least is not None and PRECEDENCE[condition.level] < PRECEDENCE[rule.at_least]:
        return
    if condition.user_induced and _held_or_unknown(state, device.id):
        return
    if rule.correlation_ns:
        _sight(state, condition, rule, at_ns)
        _suppress_elsewhere(state, condition, rule, at_ns)
    standing = _standing(state, device.id, rule.id, condition.code)
    if standing is not None:
        _keep_alive(state, standing, condition, at_ns)
        return
    window = state.get(Window, device.id, condition.code, rule.id) or Window(
        device_id=device.id, code=condition.code, rule=rule.id
    )
    window, fired = count(window, rule, at_ns, occurrences)
    if fired:
        state.put(replace(window, occurrences_ns=()))
        _fire(state, device, condition, rule, at_ns, window.occurrences_ns)
    else:
        state.put(window)


def recovered(state: State, device_id: str, code: str, at_ns: int) -> None:
    """The code is no longer present: the quiet time of its promotions begins."""
    for promotion in state.promotions_on(device_id):
        if promotion.code == code and promotion.quiet_since_ns is None:
            state.put(replace(promotion, quiet_since_ns=at_ns))


def due(state: State, promotion: Promotion) -> None:
    """The promotion's deadline: it takes effect uncorrelated, or its quiet time is over."""
    if promotion.effective:
        release(state, promotion, "quiet for the rule's release time")
    else:
        _take_effect(state, replace(promotion, effective=True, occurrences_ns=()))


def release(state: State, promotion: Promotion, why: str) -> None:
    state.drop(promotion)
    tell(state, EventKind.RELEASED, state.device(promotion.device_id), about=promotion, why=why)


def _fire(
    state: State,
    device: Device,
    condition: Condition,
    rule: FrequencyRule,
    at_ns: int,
    occurrences_ns: tuple[int, ...],
) -> None:
    ordinal = state.next_ordinal(device.id, f"rule:{rule.id}")
    promotion = Promotion(
        id=f"{device.id}/{rule.id}#{ordinal}",
        device_id=device.id,
        rule=rule.id,
        code=condition.code,
        name=condition.name,
        source=condition.source,
        level=rule.level,
        fired_ns=at_ns,
        effective=False,
        occurrences_ns=occurrences_ns,
        last_occurrence_ns=at_ns,
        quiet_since_ns=at_ns if condition.present_ns is None else None,
    )
    if not rule.correlation_ns or not _has_siblings(state, device):
        _take_effect(state, replace(promotion, effective=True, occurrences_ns=()))
        return
    state.put(promotion)
    for other in _sightings_elsewhere(state, promotion):
        if any(abs(time_ns - at_ns) <= rule.correlation_ns for time_ns in other.occurrences_ns):
            _suppress(state, promotion, rule, other)
            return


def _take_effect(state: State, promotion: Promotion) -> None:
    state.put(promotion)
    rule = state.lookup.frequency_by_id(promotion.rule)
    why = f"{rule.times} times within the time window of rule {rule.id}" if rule else ""
    tell(state, EventKind.PROMOTED, state.device(promotion.device_id), about=promotion, why=why)


def _keep_alive(state: State, promotion: Promotion, condition: Condition, at_ns: int) -> None:
    quiet_since_ns = None
    if condition.present_ns is None:
        quiet_since_ns = max(at_ns, promotion.quiet_since_ns or at_ns)
    state.put(replace(promotion, last_occurrence_ns=at_ns, quiet_since_ns=quiet_since_ns))


def forget_spent(state: State) -> None:
    """Drop windows and sightings so old that no later occurrence, not even one told late, could meet them."""
    for window in list(state.all(Window)):
        rule = state.lookup.frequency_by_id(window.rule)
        span_ns = max(rule.time_window_ns, rule.burst_ns) if rule else _DAY_NS
        newest_ns = max((*window.occurrences_ns, window.burst_last_ns or 0), default=0)
        if newest_ns < state.now_ns - 2 * span_ns:
            state.drop(window)
    for sighting in list(state.all(Sighting)):
        if max(sighting.occurrences_ns) < state.now_ns - _DAY_NS:
            state.drop(sighting)


# --------------------------------------------------------------------------- correlation


def _sight(state: State, condition: Condition, rule: FrequencyRule, at_ns: int) -> None:
    before = state.get(Sighting, condition.device_id, condition.code)
    times = [at_ns, *(before.occurrences_ns if before else ())]
    kept = sorted(time_ns for time_ns in times if time_ns >= max(times) - 2 * rule.correlation_ns)
    state.put(
        Sighting(device_id=condition.device_id, code=condition.code, occurrences_ns=tuple(kept[-_SIGHTINGS:]))
    )


def _suppress_elsewhere(state: State, condition: Condition, rule: FrequencyRule, at_ns: int) -> None:
    """An occurrence here takes back what the same code fired on other chips a moment ago."""
    here = state.get(Sighting, condition.device_id, condition.code)
    for promotion in state.all(Promotion):
        if promotion.effective or promotion.rule != rule.id or promotion.device_id == condition.device_id:
            continue
        if promotion.code != condition.code or abs(at_ns - promotion.fired_ns) > rule.correlation_ns:
            continue
        if here is not None and _same_job(state, promotion.device_id, condition.device_id):
            _suppress(state, promotion, rule, here)


def _suppress(state: State, promotion: Promotion, rule: FrequencyRule, other: Sighting) -> None:
    """Drop a promotion not yet in effect; correlated occurrences leave both queues, the others stay."""
    state.drop(promotion)
    theirs = state.get(Window, other.device_id, other.code, rule.id)
    their_times = (*other.occurrences_ns, *(theirs.occurrences_ns if theirs else ()))
    kept = _uncorrelated(promotion.occurrences_ns, their_times, rule.correlation_ns)
    own = state.get(Window, promotion.device_id, promotion.code, rule.id)
    if own is not None:
        state.put(replace(own, occurrences_ns=tuple(sorted((*kept, *own.occurrences_ns)))))
    if theirs is not None:
        left = _uncorrelated(theirs.occurrences_ns, promotion.occurrences_ns, rule.correlation_ns)
        state.put(replace(theirs, occurrences_ns=left))
    why = f"{promotion.code} came on {state.device(other.device_id).name} too: one cause, not this device"
    tell(state, EventKind.SUPPRESSED, state.device(promotion.device_id), about=promotion, why=why)


def _uncorrelated(times_ns: Iterable[int], others_ns: Iterable[int], within_ns: int) -> tuple[int, ...]:
    others = tuple(others_ns)
    return tuple(t for t in times_ns if not any(abs(t - other) <= within_ns for other in others))


def _sightings_elsewhere(state: State, promotion: Promotion) -> list[Sighting]:
    key = canonical(promotion.code)
    return [
        sighting
        for sighting in state.all(Sighting)
        if sighting.device_id != promotion.device_id
        and canonical(sighting.code) == key
        and _same_job(state, promotion.device_id, sighting.device_id)
    ]


def _same_job(state: State, one: str, other: str) -> bool:
    """True where a job holds both devices, and where holders or jobs are not known."""
    held = state.get(Held, one), state.get(Held, other)
    if held[0] is None or held[1] is None:
        return True
    jobs = [{holder.job for holder in cell.holders} for cell in held if cell is not None]
    return "" in jobs[0] | jobs[1] or bool(jobs[0] & jobs[1])


def _has_siblings(state: State, device: Device) -> bool:
    return any(other.kind is device.kind and other.id != device.id for other in state.all(Device))


def _held_or_unknown(state: State, device_id: str) -> bool:
    held = state.get(Held, device_id)
    return held is None or bool(held.holders)


def _standing(state: State, device_id: str, rule: str, code: str) -> Promotion | None:
    for promotion in state.promotions_on(device_id):
        if promotion.rule == rule and promotion.code == code:
            return promotion
    return None
