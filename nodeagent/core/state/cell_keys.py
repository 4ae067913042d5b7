"""Cells as entries: the key and the order of each type, and how one is replaced and compared fast.

It knows no meaning of any cell.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from nodeagent.core.catalog.levels import JOB_LEVELS
from nodeagent.core.model import (
    Absorbed,
    Baseline,
    Claimed,
    Condition,
    Device,
    Era,
    Held,
    Hold,
    Job,
    Noticed,
    Ordinal,
    PastResets,
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
from nodeagent.core.state.timers import Key as Key

C = TypeVar("C", Condition, Promotion, Sighting, Window)

KEYS: dict[type, Callable[[Any], Key]] = {
    Era: lambda _: ("era",),
    Source: lambda cell: ("source", cell.name, cell.device_id),
    Device: lambda cell: ("device", cell.id),
    Held: lambda cell: ("held", cell.device_id),
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


TAGS = _Tags()
"""What the keys of cells begin with, by their type."""


def keys_of(of: type[RuleCell]) -> Callable[[RuleCell], Key]:
    """The keys of the cells of one kind of rules."""
    name = TAGS[of]
    return lambda cell: (name, cell.device_id, cell.rule, *((cell.part,) if cell.part else ()))


NEWEST_LAST = frozenset({Device, Severity, Ordinal, Window, Sighting, Trace, Absorbed, Withdrawn, Noticed})
"""Kept in the order in which they were last put: the first is the one to forget."""


def changed(cell: C, **values: Any) -> C:
    """As ``dataclasses.replace``, where that is done a million times: only for cells without slots."""
    after = object.__new__(type(cell))
    object.__setattr__(after, "__dict__", cell.__dict__ | values)
    return after


def judged_alike(one: Condition, other: Condition) -> bool:
    """Whether all that a verdict and its reasons take from a condition is the same."""
    return (
        one.level is other.level
        and one.phase == other.phase
        and one.rescheduling is other.rescheduling
        and one.user_induced is other.user_induced
        and one.affects is other.affects
        and one.affect_verdict is other.affect_verdict
        and one.code == other.code
        and one.name == other.name
        and one.backing is other.backing
    )


def shown_alike(one: Condition, other: Condition) -> bool:
    """Whether both are of one boot, and are there, or gone, as much as each other."""
    return (
        one.boot_id == other.boot_id
        and (one.present_ns is None) is (other.present_ns is None)
        and (one.recovered_ns is None) is (other.recovered_ns is None)
    )


def restarts_anew(before: Condition, after: Condition) -> bool:
    """Whether what restarts its job has occurred once more."""
    restarts = after.user_induced or after.level in JOB_LEVELS
    return restarts and after.occurred_ns != before.occurred_ns


def weighed_alike(one: Promotion, other: Promotion) -> bool:
    """Whether all that they take from a promotion is."""
    return one.level is other.level and one.phase == other.phase and one.effective is other.effective
