"""From telemetry to what the rules want to know of it: crossed bounds, and counters now and then. Pure.

An ``Edge`` is made when a reading crosses a bound, a ``CounterMark`` when a counter has risen enough to
matter or has not been reported for long, and both once for the first reading of a device: the core may
remember another state from before a restart. Nothing is judged here, and what no rule names is left out.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.core.catalog.catalog import EACH_PART, CounterRule, ThresholdRule, family_of
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import NODE, CounterMark, Edge, Input
from nodeagent.wire import SOURCE

SHORTEST_NS: Final = 10 * SECOND_NS
"""No counter of a device is reported more often than this."""

_STEPS_PER_INCREASE: Final = 8
"""A rise by this part of the increase that a rule asks for is reported soon: the rule is met hardly late."""

_FAST_REPORTS_PER_WINDOW: Final = 256
"""But no more often than this in the rule's window, which keeps rises this close together as one anyhow."""

_SLOW_REPORTS_PER_WINDOW: Final = 64
"""A smaller rise is reported this often at most: it must not be placed much too late in the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportInterval:
    """How often a counter is reported: ``step`` more after ``fast_ns``, any change after ``slow_ns``."""

    step: int
    fast_ns: int
    slow_ns: int


@dataclass(slots=True, kw_only=True)
class _Counter:
    """``reported`` is the last value reported, ``read`` the last one read."""

    reported: int
    reported_ns: int
    read: int


class RuleReadings:
    """The readings of one source, over the lives of its workers. A reading of the source as a whole is the
    node's.
    """

    def __init__(
        self, source: str, threshold: Sequence[ThresholdRule] = (), counter: Sequence[CounterRule] = ()
    ) -> None:
        self._source = source
        self._above: dict[tuple[str, str], bool] = {}
        self._counters: dict[tuple[str, str], _Counter] = {}
        self._threshold: Sequence[ThresholdRule] = ()
        self._counter: Sequence[CounterRule] = ()
        self._intervals: dict[str, _ReportInterval] = {}
        self.judge_by(threshold, counter)

    def judge_by(self, threshold: Sequence[ThresholdRule], counter: Sequence[CounterRule]) -> None:
        """From now on these rules; every reading is reported again, since the rules forget what changed."""
        self._threshold = threshold
        self._counter = counter
        self._intervals = {}
        self.forget()

    def forget(self) -> None:
        """Another part may answer to a name from now on: what was reported of it says nothing."""
        self._above.clear()
        self._counters.clear()

    def take(self, device: str, readings: Mapping[str, float], now_ns: int) -> list[Input]:
        """What to report of these readings; ``now_ns`` is on any clock that does not step."""
        name = NODE if device == SOURCE else device
        inputs: list[Input] = []
        for rule in self._threshold:
            value = readings.get(rule.metric)
            if value is not None and math.isfinite(value):
                inputs += self._edge(name, rule, value)
        for metric in self._counted(readings):
            value = readings[metric]
            if math.isfinite(value) and value >= 0:
                inputs += self._marks(name, metric, self._interval(metric), int(value), now_ns)
        return inputs

    def _counted(self, readings: Mapping[str, float]) -> Iterable[str]:
        """The readings that counter rules watch, in the order of the rules."""
        return dict.fromkeys(
            metric
            for rule in self._counter
            for metric in (readings if rule.metric.endswith(EACH_PART) else (rule.metric,))
            if metric in readings and _watches(rule, metric)
        )

    def _interval(self, metric: str) -> _ReportInterval:
        if metric not in self._intervals:
            self._intervals[metric] = _interval(rule for rule in self._counter if _watches(rule, metric))
        return self._intervals[metric]

    def _edge(self, device: str, rule: ThresholdRule, value: float) -> list[Input]:
        """Between the bounds nothing is crossed."""
        if rule.clear_below <= value <= rule.above:
            return []
        above = value > rule.above
        if self._above.get((device, rule.id)) is above:
            return []
        self._above[device, rule.id] = above
        return [Edge(source=self._source, device=device, rule=rule.id, above=above, value=value)]

    def _marks(
        self, device: str, metric: str, interval: _ReportInterval, value: int, now_ns: int
    ) -> list[Input]:
        known = self._counters.get((device, metric))
        if known is None:
            self._counters[device, metric] = _Counter(reported=value, reported_ns=now_ns, read=value)
            return [self._mark(device, metric, value)]
        passed_ns = now_ns - known.reported_ns
        if value < known.read:
            if passed_ns < interval.fast_ns:
                return []
            values = [known.read, value] if known.read != known.reported else [value]
        else:
            known.read = value
            matters = value - known.reported >= interval.step and passed_ns >= interval.fast_ns
            if value == known.reported or not (matters or passed_ns >= interval.slow_ns):
                return []
            values = [value]
        self._counters[device, metric] = _Counter(reported=value, reported_ns=now_ns, read=value)
        return [self._mark(device, metric, each) for each in values]

    def _mark(self, device: str, metric: str, value: int) -> CounterMark:
        return CounterMark(source=self._source, device=device, metric=metric, value=value)


def _watches(rule: CounterRule, metric: str) -> bool:
    return rule.metric in (metric, family_of(metric))


def _interval(rules: Iterable[CounterRule]) -> _ReportInterval:
    """What the most demanding of a metric's rules needs."""
    listed = list(rules)
    window_ns = min(rule.time_window_ns for rule in listed)
    return _ReportInterval(
        step=max(1, min(rule.increase for rule in listed) // _STEPS_PER_INCREASE),
        fast_ns=max(SHORTEST_NS, window_ns // _FAST_REPORTS_PER_WINDOW),
        slow_ns=max(SHORTEST_NS, window_ns // _SLOW_REPORTS_PER_WINDOW),
    )
