"""The sliding window: the occurrences of one code on one device that a rule counts. It promotes nothing."""

from bisect import insort

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.faults import attribution
from nodeagent.core.model import Condition, CountedBy, Window
from nodeagent.core.rules import attributed_window
from nodeagent.core.state import limits
from nodeagent.core.state.cell_keys import changed
from nodeagent.core.state.state import State


def burst_ns(lookup: Lookup, rule: FrequencyRule, source: str) -> int:
    """What lies this close is one occurrence, reported several times."""
    return lookup.source(source).burst_ns if rule.burst_ns is None else rule.burst_ns


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


def window_of(state: State, device_id: str, code_key: str, rule_id: str) -> Window:
    """What is counted so far, empty if nothing."""
    window = state.get(Window, device_id, code_key, rule_id)
    return window or Window(device_id=device_id, code=code_key, rule=rule_id)


def add(
    state: State, rule: FrequencyRule, condition: Condition, source: str, at_ns: int, occurrences: int = 1
) -> tuple[Window, bool]:
    """Count what ``source`` reported of the condition, as its rule does: by device, by job or by place."""
    key = state.lookup.facts(condition.code).key
    before = window_of(state, condition.device_id, key, rule.id)
    within_ns = burst_ns(state.lookup, rule, source)
    if rule.counted_by is CountedBy.DEVICE:
        window, is_reached = count(before, rule, at_ns, occurrences, within_ns)
    else:
        evidence = condition.evidence
        job = attribution.job_of(state, condition.device_id, evidence)
        place = evidence.get(attributed_window.PLACE, "")
        window, is_reached = attributed_window.count(before, rule, at_ns, job, place, within_ns)
    limits.remember(state, window)
    return window, is_reached
