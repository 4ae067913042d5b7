"""The threshold rule: a reading above its bound for longer than ``for`` is a fault, below the other it ends.

It receives only crossings (``Edge``): between the two bounds nothing crosses, and a reading stays what it
was. Twice the same edge changes nothing. While the source is not observed the time runs on unjudged, as a
duration rule's does; the first edge after that shows whether the reading is still above. What it raises
is an ``occur`` of the source on the device, which polls neither show nor close. It reads no metric.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from nodeagent.core.catalog.catalog import ThresholdRule
from nodeagent.core.model import Assertion, Device, Edge, RuleCell, Signal
from nodeagent.core.rules.kind import Raise, Raising, RuleKind
from nodeagent.core.state import limits, registry
from nodeagent.core.state.state import EngineState


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing(RuleCell):
    """The reading is above the rule's bound since then; ``raised`` once that has lasted."""

    since_ns: int
    value: float
    raised: bool = False

    def due_ns(self, rule: Any, /) -> int | None:
        """When it was above for longer than the rule asks, None once it was."""
        return None if self.raised or not isinstance(rule, ThresholdRule) else self.since_ns + rule.for_ns + 1

    def after_clear(self, at_ns: int, /) -> Self:
        return replace(self, raised=False, since_ns=at_ns) if self.raised else self

    def survives_reload(self, before: ThresholdRule, rule: ThresholdRule, /) -> bool:
        bounds, bounds_before = ((each.above, each.clear_below, each.for_ns) for each in (rule, before))
        return self.raised or bounds == bounds_before


def crossed(state: EngineState, given: Edge, raise_: Raise) -> bool:
    """A reading has crossed a bound, or is reported again where it is. True if that changed anything."""
    device = registry.find(state, given.device)
    rule = state.lookup.raising_by_id(given.rule)
    if device is None or not isinstance(rule, ThresholdRule):
        return False
    crossing = state.get(Crossing, device.id, rule.id)
    if not given.above:
        return crossing is not None and _fell(state, device, crossing, rule, given.value, raise_)
    if crossing is None:
        return _rose(state, device, given)
    if crossing.raised and state.condition(device.id, state.lookup.facts(rule.code).key) is None:
        _raise(state, device, replace(crossing, value=given.value), rule, raise_)
        return True
    return False


def due(state: EngineState, crossing: Crossing, raise_: Raise) -> None:
    """It was above for as long as its rule asks."""
    rule = state.lookup.raising_by_id(crossing.rule)
    if isinstance(rule, ThresholdRule):
        _raise(state, state.device(crossing.device_id), crossing, rule, raise_)


def _rose(state: EngineState, device: Device, given: Edge) -> bool:
    if not limits.room_for_rule_cell(state, Crossing):
        state.overflow = f"{given.rule} on {given.device} is one reading too many"
        return False
    crossing = Crossing(
        device_id=device.id,
        rule=given.rule,
        source=given.source,
        since_ns=state.moment_ns,
        value=given.value,
    )
    state.put(crossing)
    return True


def _fell(
    state: EngineState, device: Device, crossing: Crossing, rule: ThresholdRule, value: float, raise_: Raise
) -> bool:
    state.drop(crossing)
    if crossing.raised:
        raise_(state, _signal(device, crossing, rule, Assertion.RECOVER, value), rule.id)
    return True


def _raise(
    state: EngineState, device: Device, crossing: Crossing, rule: ThresholdRule, raise_: Raise
) -> None:
    state.put(replace(crossing, raised=True))
    raise_(state, _signal(device, crossing, rule, Assertion.OCCUR, crossing.value), rule.id)


def _signal(
    device: Device, crossing: Crossing, rule: ThresholdRule, assertion: Assertion, value: float
) -> Signal:
    return Signal(
        source=crossing.source,
        device=device.id,
        code=rule.code,
        assertion=assertion,
        evidence={"rule": rule.id, "metric": rule.metric, "value": f"{value:g}", "above": f"{rule.above:g}"},
    )


KIND = RuleKind(
    name="threshold", raising=Raising(tag="Crossing", cell=Crossing, handlers={Edge: crossed}, due=due)
)
