"""Cells as entries: the key and the order of each type, how one is replaced and compared fast, and timers.

Timers are ordered by time and then by key, so that equal inputs fire in equal order. Nothing here knows what
a cell or a deadline means.
"""

import heapq
from collections.abc import Callable
from typing import Any, TypeVar

from nodeagent.core.catalog.levels import JOB_LEVELS
from nodeagent.core.model import (
    Absorbed,
    Baseline,
    Claimed,
    Condition,
    Device,
    DeviceProcesses,
    Era,
    Grade,
    Hold,
    Job,
    Noticed,
    Ordinal,
    PastResets,
    Presence,
    Promotion,
    Reset,
    RuleCell,
    Severity,
    Shown,
    Sighting,
    Source,
    Trace,
    Window,
    Withdrawn,
)

Key = tuple[str, ...]


class Timers:
    """At most one deadline per key; setting a key again moves it.

    A deadline moved to a later time keeps its place in the heap until that comes up: a storm that
    postpones one deadline a million times costs a million assignments, not as many heap entries.
    """

    def __init__(self) -> None:
        self._at_ns: dict[Key, int] = {}
        self._queued_ns: dict[Key, int] = {}
        self._heap: list[tuple[int, Key]] = []

    def set(self, key: Key, at_ns: int | None) -> None:
        """Move the key's deadline, or remove it with None."""
        if at_ns is None:
            self._at_ns.pop(key, None)
            return
        self._at_ns[key] = at_ns
        queued_ns = self._queued_ns.get(key)
        if queued_ns is None or at_ns < queued_ns:
            self._queued_ns[key] = at_ns
            heapq.heappush(self._heap, (at_ns, key))
            self._shed()

    def next_ns(self) -> int | None:
        while self._heap:
            queued_ns, key = self._heap[0]
            at_ns = self._at_ns.get(key)
            if at_ns == queued_ns:
                return at_ns
            if self._queued_ns.get(key) != queued_ns:
                heapq.heappop(self._heap)
            elif at_ns is None:
                heapq.heappop(self._heap)
                del self._queued_ns[key]
            else:
                heapq.heapreplace(self._heap, (at_ns, key))
                self._queued_ns[key] = at_ns
        return None

    def pop_due(self, now_ns: int) -> tuple[int, Key] | None:
        """Take the earliest deadline at or before ``now_ns``, else None."""
        if not self._heap or self._heap[0][0] > now_ns:
            return None
        at_ns = self.next_ns()
        if at_ns is None or at_ns > now_ns:
            return None
        _, key = heapq.heappop(self._heap)
        del self._at_ns[key]
        del self._queued_ns[key]
        return at_ns, key

    def _shed(self) -> None:
        """Drop outlived entries once they outnumber the live ones: no storm may grow the heap."""
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._at_ns):
            self._heap = [(at_ns, key) for key, at_ns in self._at_ns.items()]
            self._queued_ns = dict(self._at_ns)
            heapq.heapify(self._heap)


C = TypeVar("C", Condition, Presence, Promotion, Sighting, Window)

KEYS: dict[type, Callable[[Any], Key]] = {
    Era: lambda _: ("era",),
    Source: lambda cell: ("source", cell.name, cell.device_id),
    Device: lambda cell: ("device", cell.id),
    DeviceProcesses: lambda cell: ("held", cell.device_id),
    Severity: lambda cell: ("severity", cell.code),
    Ordinal: lambda cell: ("ordinal", cell.device_id, cell.key),
    Claimed: lambda cell: ("claimed", cell.device_id),
    Job: lambda cell: ("job", cell.name),
    Condition: lambda cell: ("condition", cell.id),
    Promotion: lambda cell: ("promotion", cell.id),
    Hold: lambda cell: ("hold", cell.id),
    Reset: lambda cell: ("reset", cell.id),
    PastResets: lambda cell: ("pastresets", cell.device_id),
    Window: lambda cell: ("window", cell.device_id, cell.code, cell.rule),
    Sighting: lambda cell: ("sighting", cell.device_id, cell.code),
    Trace: lambda cell: ("trace", cell.device_id, cell.code),
    Absorbed: lambda cell: ("absorbed", cell.device_id, cell.code),
    Withdrawn: lambda cell: ("withdrawn", cell.report),
    Noticed: lambda cell: ("noticed", cell.device_id, cell.code),
    Shown: lambda cell: ("shown", cell.device_id),
    Baseline: lambda cell: ("baseline", cell.device_id),
}
"""The key of each kind of cell, in the order in which cells are carried: what decides over a cell's timer
comes before it. Those of rules come last (``keys_of``).
"""


class _Tags(dict[type, str]):
    def __missing__(self, of: type) -> str:
        return self.setdefault(of, of.__name__.lower())


TAGS = _Tags({DeviceProcesses: "held"})
"""What the keys of cells begin with, by their type."""


def keys_of(of: type[RuleCell]) -> Callable[[RuleCell], Key]:
    """The keys of the cells of one kind of rules."""
    name = TAGS[of]
    return lambda cell: (name, cell.device_id, cell.rule, *((cell.part,) if cell.part else ()))


NEWEST_LAST = frozenset({Device, Severity, Ordinal, Window, Sighting, Trace, Absorbed, Withdrawn, Noticed})
"""Kept in the order in which they were last put: the first is the one to forget."""


def changed(cell: C, **values: Any) -> C:
    """As ``dataclasses.replace``, where that is done a million times: only for what has no slots."""
    after = object.__new__(type(cell))
    object.__setattr__(after, "__dict__", cell.__dict__ | values)
    return after


def judged_alike(one: Condition, other: Condition) -> bool:
    """Whether all that a verdict and its reasons take from a condition is the same."""
    return (
        (one.grade is other.grade or _graded_alike(one.grade, other.grade))
        and one.code == other.code
        and one.name == other.name
        and one.backing.belief is other.backing.belief
    )


def _graded_alike(one: Grade, other: Grade) -> bool:
    return (
        one.level is other.level
        and one.phase == other.phase
        and one.rescheduling is other.rescheduling
        and one.user_induced is other.user_induced
        and one.affects is other.affects
        and one.affect_verdict is other.affect_verdict
    )


def shown_alike(one: Presence, other: Presence) -> bool:
    """Whether both are of one boot, and are there, or gone, as much as each other."""
    return (
        one.boot_id == other.boot_id
        and (one.present_ns is None) is (other.present_ns is None)
        and (one.recovered_ns is None) is (other.recovered_ns is None)
    )


def restarts_again(before: Condition, after: Condition) -> bool:
    """Whether what restarts its job has occurred once more."""
    restarts = after.grade.user_induced or after.grade.level in JOB_LEVELS
    return restarts and after.presence.occurred_ns != before.presence.occurred_ns


def weighed_alike(one: Promotion, other: Promotion) -> bool:
    """Whether all that they take from a promotion is."""
    return one.level is other.level and one.phase == other.phase and one.effective is other.effective
