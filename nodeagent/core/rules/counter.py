"""The counter rule: a counter that rises by so much within its window is a fault, until a window later.

A rise belongs to the time of the mark that shows it; one exactly a window old still counts. A value below
the last one is a counter that began anew (a reset, a wrap): all it shows has risen since. The first value
of a counter is where counting begins. While the rule stays met its fault stays open; it recovers once the
rule was not met for a whole window. What it raises is an ``occur`` of the source on the device, which
polls neither show nor close. It reads no metric.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from nodeagent.core.catalog.catalog import CounterRule
from nodeagent.core.devices import registry
from nodeagent.core.faults import signals
from nodeagent.core.model import Assertion, CounterMark, Device, RuleCell, Signal
from nodeagent.core.rules.kind import RuleKind
from nodeagent.core.state import limits
from nodeagent.core.state.state import State

_PARTS = 256
"""Rises closer to each other than this part of the window are kept as one, at the time of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(RuleCell):
    """What was seen of the counter: its value, and by how much it rose when, oldest first.

    ``rises`` holds pairs (ns, increase). ``reached_ns`` is when the rule was last met, None while what
    it raised is over.
    """

    value: int
    rises: tuple[tuple[int, int], ...] = ()
    reached_ns: int | None = None

    def due_ns(self, rule: Any, /) -> int | None:
        """When the rule will not have been met for a whole window, None where it is not."""
        if self.reached_ns is None or not isinstance(rule, CounterRule):
            return None
        return self.reached_ns + rule.time_window_ns + 1

    def after_clear(self, _at_ns: int, /) -> Self:
        return self if self.reached_ns is None else replace(self, reached_ns=None, rises=())


def marked(state: State, given: CounterMark) -> bool:
    """A counter has this value. True if it is new to any rule."""
    device = registry.find(state, given.device)
    if device is None:
        return False
    changed = False
    for rule in state.lookup.watching(given.metric):
        if isinstance(rule, CounterRule):
            changed = _take(state, device, rule, given) or changed
    return changed


def due(state: State, tally: Tally) -> None:
    """The rule was not met for a whole window."""
    state.put(replace(tally, reached_ns=None))
    rule = state.lookup.raising_by_id(tally.rule)
    if isinstance(rule, CounterRule):
        device = state.device(tally.device_id)
        signals.signalled(state, _signal(device, tally, rule, Assertion.RECOVER), rule.id)


def risen(rises: tuple[tuple[int, int], ...], rule: CounterRule, at_ns: int) -> int:
    """How much the counter rose within the window that ends at this time."""
    return sum(increase for rise_ns, increase in rises if rise_ns >= at_ns - rule.time_window_ns)


def _take(state: State, device: Device, rule: CounterRule, given: CounterMark) -> bool:
    tally = state.get(Tally, device.id, rule.id)
    if tally is None:
        return _begin(state, device, rule, given)
    if tally.value == given.value:
        return False
    increase = given.value - tally.value if given.value > tally.value else given.value
    rises = _with(tally.rises, rule, state.moment_ns, increase)
    after = replace(tally, source=given.source, value=given.value, rises=rises)
    if risen(rises, rule, state.moment_ns) < rule.increase:
        state.put(after)
        return True
    state.put(replace(after, reached_ns=state.moment_ns))
    if tally.reached_ns is None:
        signals.signalled(state, _signal(device, after, rule, Assertion.OCCUR), rule.id)
    return True


def _begin(state: State, device: Device, rule: CounterRule, given: CounterMark) -> bool:
    if not limits.room_for_rule_cell(state, Tally):
        state.overflow = f"{given.metric} on {given.device} is one counter too many"
        return False
    state.put(Tally(device_id=device.id, rule=rule.id, source=given.source, value=given.value))
    return True


def _with(
    rises: tuple[tuple[int, int], ...], rule: CounterRule, at_ns: int, increase: int
) -> tuple[tuple[int, int], ...]:
    """The rises of the window with one more, never more than ``_PARTS`` and one."""
    if not increase:
        return rises
    kept = tuple(rise for rise in rises if rise[0] >= at_ns - rule.time_window_ns)
    if kept and at_ns - kept[-1][0] < rule.time_window_ns // _PARTS:
        return (*kept[:-1], (kept[-1][0], kept[-1][1] + increase))
    return (*kept, (at_ns, increase))


def _signal(device: Device, tally: Tally, rule: CounterRule, assertion: Assertion) -> Signal:
    evidence = {"rule": rule.id, "metric": rule.metric, "value": str(tally.value)}
    if assertion is Assertion.OCCUR:
        evidence["increase"] = str(sum(increase for _, increase in tally.rises))
    return Signal(
        source=tally.source, device=device.id, code=rule.code, assertion=assertion, evidence=evidence
    )


KIND = RuleKind(tag="Tally", cell=Tally, handlers={CounterMark: marked}, due=due)
