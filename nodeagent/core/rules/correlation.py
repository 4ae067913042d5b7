"""Correlation: a fault that comes on several chips of a job at once is the job's, not a chip's.

A promotion that has fired waits here for its correlation time. If the same code comes on another
chip of the same job within that time before or after, it is suppressed, and the correlated
occurrences leave the queues of every chip that showed them. Nothing here counts or promotes.
"""

from bisect import bisect_left
from dataclasses import replace

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.judge.events import emit
from nodeagent.core.model import Device, EventKind, Promotion, Sighting, Window
from nodeagent.core.rules import windows
from nodeagent.core.state import limits, occupancy
from nodeagent.core.state.cells import changed
from nodeagent.core.state.state import EngineState

_SIGHTINGS = 16


def sight(state: EngineState, device_id: str, code_key: str, rule: FrequencyRule, at_ns: int) -> None:
    """Remember that the code came on the device: the newest times near which others may still be counted."""
    before = state.get(Sighting, device_id, code_key)
    if before is None:
        limits.remember(state, Sighting(device_id=device_id, code=code_key, occurrences_ns=(at_ns,)))
        return
    times = before.occurrences_ns
    if at_ns in times:
        return
    times = (*times, at_ns) if at_ns > times[-1] else tuple(sorted((*times, at_ns)))
    first = max(
        bisect_left(times, times[-1] - rule.time_window_ns - rule.correlation_ns), len(times) - _SIGHTINGS
    )
    limits.remember(state, changed(before, occurrences_ns=times[first:]))


def review(state: EngineState, device_id: str, code_key: str, rule: FrequencyRule, at_ns: int) -> None:
    """An occurrence was counted: suppress what it correlates, or let it leave with what was suppressed."""
    if not state.pending and not state.suppressed:
        return
    correlated = [
        (promotion, other)
        for promotion in _pending(state, code_key, rule)
        if (other := _shown_elsewhere(state, promotion, code_key, rule)) is not None
    ]
    if correlated:
        for promotion, _ in correlated:
            _requeue(state, promotion, code_key)
        _leave(state, code_key, rule)
        for promotion, other in correlated:
            name = state.device(other).name
            why = f"{promotion.code} came on {name} too: one cause, not this device"
            emit(state, EventKind.SUPPRESSED, state.device(promotion.device_id), about=promotion, why=why)
    elif _belongs_to_suppressed(state, device_id, code_key, rule, at_ns):
        _leave(state, code_key, rule)


def has_siblings(state: EngineState, device: Device) -> bool:
    return any(
        other.kind is device.kind and other.id != device.id and not other.gone
        for other in state.cells[Device].values()
    )


def _pending(state: EngineState, code_key: str, rule: FrequencyRule) -> list[Promotion]:
    promotions: list[Promotion] = [state.cells[Promotion][key] for key in state.pending]
    return [
        promotion
        for promotion in promotions
        if promotion.rule == rule.id and state.lookup.facts(promotion.code).key == code_key
    ]


def _shown_elsewhere(
    state: EngineState, promotion: Promotion, code_key: str, rule: FrequencyRule
) -> str | None:
    """Another device of the same job that showed the code close to the occurrence that fired."""
    for device_id in state.cells[Device]:
        sighting = state.get(Sighting, device_id[1], code_key)
        if sighting is None or sighting.device_id == promotion.device_id:
            continue
        near = any(
            abs(at_ns - promotion.fired_ns) <= rule.correlation_ns for at_ns in sighting.occurrences_ns
        )
        if near and _one_cause(state, code_key, promotion.device_id, sighting.device_id):
            return sighting.device_id
    return None


def _requeue(state: EngineState, promotion: Promotion, code_key: str) -> None:
    """The promotion goes; its occurrences are back in the queue, and it is noted when it had fired."""
    state.drop(promotion)
    window = state.get(Window, promotion.device_id, code_key, promotion.rule)
    if window is not None:
        times = tuple(sorted((*promotion.occurrences_ns, *window.occurrences_ns)))
        limits.remember(state, replace(window, occurrences_ns=times))
    sighting = state.get(Sighting, promotion.device_id, code_key)
    if sighting is not None:
        limits.remember(state, replace(sighting, suppressed_ns=promotion.fired_ns))


def _belongs_to_suppressed(
    state: EngineState, device_id: str, code_key: str, rule: FrequencyRule, at_ns: int
) -> bool:
    for key in state.suppressed.get(code_key, ()):
        sighting: Sighting = state.cells[Sighting][key]
        if sighting.suppressed_ns is None:
            continue
        near = abs(at_ns - sighting.suppressed_ns) <= rule.correlation_ns
        own = sighting.device_id == device_id
        if near and (own or _one_cause(state, code_key, device_id, sighting.device_id)):
            return True
    return False


def _leave(state: EngineState, code_key: str, rule: FrequencyRule) -> None:
    """Take every occurrence out of the queues for which another chip of the job shows one close by."""
    queues: dict[str, Window] = {}
    shown: dict[str, tuple[int, ...]] = {}
    for key in state.cells[Device]:
        device_id = key[1]
        window = state.get(Window, device_id, code_key, rule.id)
        sighting = state.get(Sighting, device_id, code_key)
        if window is not None:
            queues[device_id] = window
        shown[device_id] = (
            *(window.occurrences_ns if window is not None else ()),
            *(sighting.occurrences_ns if sighting is not None else ()),
        )
    for device_id, window in queues.items():
        others = [
            at_ns
            for other, times in shown.items()
            if times and other != device_id and _one_cause(state, code_key, device_id, other)
            for at_ns in times
        ]
        kept = tuple(
            at_ns
            for at_ns in window.occurrences_ns
            if not any(abs(at_ns - other_ns) <= rule.correlation_ns for other_ns in others)
        )
        after = replace(window, occurrences_ns=kept)
        for other_ns in others if window.attributed else ():
            after = replace(after, attributed=windows.without_near(after, other_ns, rule.correlation_ns))
        if after != window:
            limits.remember(state, after)


def _one_cause(state: EngineState, code_key: str, one: str, other: str) -> bool:
    """Whether one job may have caused the fault on both: it may have used them while that was not observed.

    It may also have caused a fault of the application where both are free: it begins, and crashes, between
    two polls of their processes.
    """
    known = occupancy.is_known(state, one) and occupancy.is_known(state, other)
    if not known or occupancy.same_job(state, one, other):
        return True
    row = state.lookup.facts(code_key).row
    return (
        row is not None
        and row.user_induced
        and occupancy.is_free(state, one)
        and occupancy.is_free(state, other)
    )
