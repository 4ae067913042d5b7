"""The threshold rule: a reading above its bound for longer than ``for`` is a fault, below the other it ends.

It hears only of crossings (``Edge``): between the two bounds nothing crosses, and a reading stays what it
was. Twice the same edge changes nothing. While the source is not observed the time runs on unjudged, as a
duration rule's does; what comes first after that says whether the reading is still above. What it raises
is an ``occur`` of the source on the device, which polls neither show nor close. It reads no metric.
"""

from dataclasses import replace

from nodeagent.core import devices, limits, signals
from nodeagent.core.catalog import ThresholdRule
from nodeagent.core.model import Assertion, Crossing, Device, Edge, Signal
from nodeagent.core.state import State


def crossed(state: State, given: Edge) -> bool:
    """A reading has crossed a bound, or is told anew where it is. True if that changed anything."""
    device = devices.find(state, given.device)
    rule = state.lookup.threshold_by_id(given.rule)
    if device is None or rule is None:
        return False
    crossing = state.get(Crossing, device.id, rule.id)
    if not given.above:
        return crossing is not None and _fell(state, device, crossing, rule, given.value)
    if crossing is None:
        return _rose(state, device, given)
    if crossing.raised and state.condition(device.id, state.lookup.facts(rule.code).key) is None:
        _raise(state, device, replace(crossing, value=given.value), rule)
        return True
    return False


def due(state: State, crossing: Crossing) -> None:
    """It was above for as long as its rule asks."""
    rule = state.lookup.threshold_by_id(crossing.rule)
    if rule is not None:
        _raise(state, state.device(crossing.device_id), crossing, rule)


def _rose(state: State, device: Device, given: Edge) -> bool:
    if not limits.room_for_crossing(state):
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


def _fell(state: State, device: Device, crossing: Crossing, rule: ThresholdRule, value: float) -> bool:
    state.drop(crossing)
    if crossing.raised:
        signals.signalled(state, _signal(device, crossing, rule, Assertion.RECOVER, value), rule.id)
    return True


def _raise(state: State, device: Device, crossing: Crossing, rule: ThresholdRule) -> None:
    state.put(replace(crossing, raised=True))
    signals.signalled(state, _signal(device, crossing, rule, Assertion.OCCUR, crossing.value), rule.id)


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
