"""The counter rule: a counter that rises by so much within its window is a fault, until a window later.

A rise belongs to the time of the mark that shows it; one exactly a window old still counts. A value below
the last one is a counter that started over (a reset, a wrap): all it shows has risen since. One that is kept
for life does not start over: it has lost what was not written down yet, and has not risen. The first value
of a counter is where counting begins. While the rule stays met its fault stays open; it recovers once the
rule was not met for a whole window. What it raises is an ``occur`` of the source on the device, which
polls neither show nor close. It reads no metric.

Of a family each reading has a tally of its own, and meets the rule by itself. Their fault is one: it names
those that meet the rule, each that joins them is an occurrence, and it recovers with the last of them.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

from nodeagent.core.catalog.catalog import EACH_PART, CounterRule
from nodeagent.core.model import Assertion, CounterMark, Device, RuleCell, Signal
from nodeagent.core.rules import relation
from nodeagent.core.rules.kind import Raise, Raising, RuleKind
from nodeagent.core.state import limits, registry
from nodeagent.core.state.state import EngineState

_PARTS: Final = 256
"""Rises closer to each other than this part of the window are kept as one, at the time of the first."""

_MAX_NAMED: Final = 16
"""The most readings of a family that the evidence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(RuleCell):
    """What was seen of the counter: its value, and by how much it rose when, oldest first.

    ``rises`` are pairs (ns, increase). ``reached_ns`` is when the rule was last met, None while what
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


def marked(state: EngineState, given: CounterMark, raise_: Raise) -> bool:
    """A counter has this value. True if it is new to any rule."""
    device = registry.find(state, given.device)
    if device is None:
        return False
    changed = False
    for rule in state.lookup.watching(given.metric):
        if isinstance(rule, CounterRule):
            changed = _take(state, device, rule, given, raise_) or changed
    return changed


def due(state: EngineState, tally: Tally, raise_: Raise) -> None:
    """The rule was not met for a whole window, by this reading."""
    after = replace(tally, reached_ns=None)
    state.put(after)
    rule = state.lookup.raising_by_id(tally.rule)
    if isinstance(rule, CounterRule) and not _parts_that_meet(state, after):
        _signal(state, after, rule, Assertion.RECOVER, raise_)


def risen(rises: tuple[tuple[int, int], ...], rule: CounterRule, at_ns: int) -> int:
    """How much the counter rose within the window that ends at this time."""
    return sum(increase for rise_ns, increase in rises if rise_ns >= at_ns - rule.time_window_ns)


def _take(state: EngineState, device: Device, rule: CounterRule, given: CounterMark, raise_: Raise) -> bool:
    part = given.metric.partition(".")[2] if rule.metric.endswith(EACH_PART) else ""
    tally = state.get(Tally, device.id, rule.id, *((part,) if part else ()))
    if tally is None:
        return _begin(state, device, rule, given, part)
    if tally.value == given.value:
        return False
    increase = _increase(tally, rule, given.value)
    rises = _with(tally.rises, rule, state.moment_ns, increase)
    after = replace(tally, source=given.source, value=given.value, rises=rises)
    if not increase or risen(rises, rule, state.moment_ns) < rule.increase:
        state.put(after)
        return True
    after = replace(after, reached_ns=state.moment_ns)
    state.put(after)
    if tally.reached_ns is None or not _is_shown(state, device, rule):
        _signal(state, after, rule, Assertion.OCCUR, raise_)
    return True


def _increase(tally: Tally, rule: CounterRule, value: int) -> int:
    if value >= tally.value:
        return value - tally.value
    return 0 if rule.lifetime else value


def _is_shown(state: EngineState, device: Device, rule: CounterRule) -> bool:
    """Whether its fault is open, or goes with one that is, which new tables may have taken away; what only
    has a notice was shown once.
    """
    facts = state.lookup.facts(rule.code)
    return (
        state.condition(device.id, facts.key) is not None
        or relation.absorbed(state, device.id, facts.key) is not None
        or (facts.row is not None and facts.row.notice)
    )


def _begin(state: EngineState, device: Device, rule: CounterRule, given: CounterMark, part: str) -> bool:
    if not limits.room_for_rule_cell(state, Tally):
        state.overflow = f"{given.metric} on {given.device} is one counter too many"
        return False
    state.put(Tally(device_id=device.id, rule=rule.id, source=given.source, part=part, value=given.value))
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


def _parts_that_meet(state: EngineState, tally: Tally) -> list[str]:
    """The readings of the rule's family that meet it on the device, numbers in their order."""
    tallies = state.of_rule(Tally, tally.device_id, tally.rule)
    meeting = (each.part for each in tallies if each.reached_ns is not None)
    return sorted(meeting, key=lambda part: (len(part), part))


def _signal(state: EngineState, tally: Tally, rule: CounterRule, assertion: Assertion, raise_: Raise) -> None:
    evidence = {"rule": rule.id, "metric": rule.metric.removesuffix(EACH_PART), "value": str(tally.value)}
    if tally.part:
        evidence["part"] = ", ".join(_parts_that_meet(state, tally)[:_MAX_NAMED]) or tally.part
    if assertion is Assertion.OCCUR:
        evidence["increase"] = str(sum(increase for _, increase in tally.rises))
    signal = Signal(
        source=tally.source,
        device=tally.device_id,
        code=rule.code,
        assertion=assertion,
        evidence=evidence,
    )
    raise_(state, signal, rule.id)


KIND = RuleKind(
    name="counter", raising=Raising(tag="Tally", cell=Tally, handlers={CounterMark: marked}, due=due)
)
