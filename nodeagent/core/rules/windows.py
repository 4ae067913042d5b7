"""The sliding window: which occurrences of a code on a device a frequency rule counts, and whose they are.

A rule counts by device, by job or by place. By job, occurrences of one job are counted together. By place,
each job counts once, and only where it failed at one place alone: a program that is wrong fails wherever it
runs. A program that fails as often as its user likes is no sign of a broken device, so an occurrence that
belongs to no known job counts for nothing there. Nothing here promotes.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import Claimed, Condition, CountedBy, Holder, Occurrence, Window
from nodeagent.core.state import limits, occupancy
from nodeagent.core.state.cells import changed
from nodeagent.core.state.state import EngineState

PLACE = "place"
"""The key of the evidence, and the group of a pattern, that names the place."""

_SEPARATOR = "; "
"""Between several of them."""

MAX_OCCURRENCES = 128
"""The most that one window keeps; the oldest make way."""

_NAMED = 2
"""The most places in the evidence: two already show that it was not one place."""


def add(
    state: EngineState,
    rule: FrequencyRule,
    condition: Condition,
    source: str,
    at_ns: int,
    occurrences: int = 1,
) -> tuple[Window, bool]:
    """Count what ``source`` reported of the condition, as its rule does: by device, by job or by place."""
    key = state.lookup.facts(condition.code).key
    before = window_of(state, condition.device_id, key, rule.id)
    within_ns = burst_ns(state.lookup, rule, source)
    if rule.counted_by is CountedBy.DEVICE:
        window, is_reached = count(before, rule, at_ns, occurrences, within_ns)
    else:
        evidence = condition.backing.evidence
        job = _job_of(state, condition.device_id, evidence)
        place = evidence.get(PLACE, "")
        window, is_reached = count_attributed(before, rule, at_ns, job, place, within_ns)
    limits.remember(state, window)
    return window, is_reached


def window_of(state: EngineState, device_id: str, code_key: str, rule_id: str) -> Window:
    """What is counted so far, empty if nothing."""
    window = state.get(Window, device_id, code_key, rule_id)
    return window or Window(device_id=device_id, code=code_key, rule=rule_id)


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


def count_attributed(
    window: Window, rule: FrequencyRule, at_ns: int, job: str, place: str = "", within_burst_ns: int = 0
) -> tuple[Window, bool]:
    """Add an occurrence of ``job`` at ``place``; true when those that the rule counts with it are ``times``.

    One exactly a window old still counts. A job's within a burst are one.
    """
    by_place = rule.counted_by is CountedBy.PLACE
    if not job or (by_place and not place):
        return window, False
    known = list(window.attributed)
    of_same = [one for one in known if one.job == job and (one.place == place or not by_place)]
    newest = of_same[-1] if of_same else None
    if newest is not None and (by_place or (within_burst_ns and at_ns - newest.last_ns <= within_burst_ns)):
        known.remove(newest)
        known.append(replace(newest, last_ns=max(at_ns, newest.last_ns)))
    else:
        known.append(Occurrence(at_ns=at_ns, last_ns=at_ns, job=job, place=place))
    oldest_ns = max(one.last_ns for one in known) - rule.time_window_ns
    kept = tuple(one for one in known if one.last_ns >= oldest_ns)[-MAX_OCCURRENCES:]
    if by_place:
        together = _jobs_at(kept, place)
    else:
        together = sum(one.job == job and one.at_ns >= oldest_ns for one in kept)
    return changed(window, attributed=kept), together >= rule.times


def _jobs_at(occurrences: tuple[Occurrence, ...], place: str) -> int:
    """How many jobs failed at this place, and nowhere else."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for one in occurrences:
        places[one.job].update(one.place.split(_SEPARATOR))
    return sum(found == {place} for found in places.values())


def without_near(window: Window, around_ns: int, within_ns: int) -> tuple[Occurrence, ...]:
    """What is left of what it counts by job or place, but for that near a time."""
    return tuple(
        one
        for one in window.attributed
        if around_ns + within_ns < one.at_ns or one.last_ns < around_ns - within_ns
    )


# ---------------------------------------------------------------------- jobs and places


def _job_of(state: EngineState, device_id: str, evidence: Mapping[str, str]) -> str:
    """The job whose fault it is, "" where that is unknown.

    A single claim decides it, since a claim is for the whole device; else the process that the kernel's line
    names; else the only job that uses the device, or used it until just now.
    """
    claimed = state.get(Claimed, device_id)
    if claimed is not None and len(claimed.jobs) == 1:
        return claimed.jobs[0][0]
    holders = occupancy.late_users(state, device_id)
    if occupancy.names_process(evidence):
        pid = int(evidence[occupancy.PID])
        return next((_job(holder) for holder in holders if holder.pid == pid), _of_pid(pid))
    jobs = {_job(holder) for holder in holders}
    return jobs.pop() if len(jobs) == 1 else ""


def _job(holder: Holder) -> str:
    return holder.job or _of_pid(holder.pid)


def _of_pid(pid: int) -> str:
    return f"pid {pid}"


def gathered_evidence(
    before: Mapping[str, str], reported: Mapping[str, str], *, same_occurrence: bool
) -> Mapping[str, str]:
    """The evidence of a condition with the process and the places that another signal of it names.

    ``same_occurrence``: it may be of the same one, which several lines, and the driver, report. It is not
    where it names another process.
    """
    after = dict(before)
    if occupancy.names_process(reported):
        is_other = occupancy.names_process(before) and before[occupancy.PID] != reported[occupancy.PID]
        same_occurrence = same_occurrence and not is_other
        after[occupancy.PID] = reported[occupancy.PID]
    elif not same_occurrence:
        after.pop(occupancy.PID, None)
    known = after.pop(PLACE, "").split(_SEPARATOR)
    places = [
        place
        for place in dict.fromkeys((*(known if same_occurrence else ()), reported.get(PLACE, "")))
        if place
    ]
    if places:
        after[PLACE] = _SEPARATOR.join(places[:_NAMED])
    return after
