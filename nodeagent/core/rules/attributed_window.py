"""The sliding window of a rule that counts by job, or by place: pure, and forgets what is too old.

By job, occurrences of one job are counted together. By place, each job counts once, and only where it failed
at one place alone: a program that is wrong fails wherever it runs. What nobody can attribute counts for
nothing. Whose an occurrence is says ``attribution``; what follows from the count is ``frequency``'s.
"""

from collections import defaultdict
from dataclasses import replace

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.model import CountedBy, Occurrence, Window
from nodeagent.core.state.cell_keys import changed

PLACE = "place"
"""The key of the evidence, and the group of a pattern, that names the place."""
SEPARATOR = "; "
"""Between several of them."""

MAX_OCCURRENCES = 128
"""So many are kept in one window; the oldest make way."""


def count(
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
        together = jobs_at(kept, place)
    else:
        together = sum(one.job == job and one.at_ns >= oldest_ns for one in kept)
    return changed(window, attributed=kept), together >= rule.times


def jobs_at(occurrences: tuple[Occurrence, ...], place: str) -> int:
    """How many jobs failed at this place, and nowhere else."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for one in occurrences:
        places[one.job].update(one.place.split(SEPARATOR))
    return sum(found == {place} for found in places.values())


def without(window: Window, around_ns: int, within_ns: int) -> tuple[Occurrence, ...]:
    """What is left of what it counts by job or place, but for that near a time."""
    return tuple(
        one
        for one in window.attributed
        if around_ns + within_ns < one.at_ns or one.last_ns < around_ns - within_ns
    )
