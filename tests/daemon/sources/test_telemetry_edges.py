"""What the core hears of telemetry: crossings of bounds, and counters seldom."""

from collections.abc import Mapping, Sequence

import pytest

from nodeagent.core.catalog.catalog import CounterRule, ThresholdRule
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import CounterMark, Edge, Input
from nodeagent.daemon.sources.telemetry_edges import RuleReadings

HOT = ThresholdRule(id="hot", code="H", metric="celsius", above=90, clear_below=85, for_ns=60 * SECOND_NS)
DAY = CounterRule(id="day", code="D", metric="ecc_total", increase=800, time_window_ns=86_400 * SECOND_NS)
MINUTE = CounterRule(id="minute", code="M", metric="ecc_total", increase=80, time_window_ns=60 * SECOND_NS)


def temperatures(
    readings: RuleReadings, values: Sequence[float], device: str = "npu0"
) -> list[tuple[int, bool]]:
    """(place, above) of every edge that these readings make, a second apart."""
    reported = []
    for place, value in enumerate(values):
        for given in readings.take(device, {"celsius": value, "other": 1.0}, place * SECOND_NS):
            assert isinstance(given, Edge)
            assert (given.source, given.device, given.rule, given.value) == ("nvidia", device, "hot", value)
            reported.append((place, given.above))
    return reported


def counts(readings: RuleReadings, steps: Sequence[tuple[int, float]]) -> list[tuple[int, int]]:
    """(second, value) of every mark that a counter with these values makes."""
    reported = []
    for at_s, value in steps:
        for given in readings.take("npu0", {"ecc_total": value}, at_s * SECOND_NS):
            assert isinstance(given, CounterMark)
            reported.append((at_s, given.value))
    return reported


def test_an_edge_is_made_only_where_a_bound_is_crossed() -> None:
    readings = RuleReadings("nvidia", [HOT])
    values = [70, 80, 91, 95, 90, 86, 85, 84.9, 86, 90, 90.1]
    assert temperatures(readings, values) == [(0, False), (2, True), (7, False), (10, True)]


def test_the_first_reading_is_told_unless_it_is_between_the_bounds() -> None:
    assert temperatures(RuleReadings("nvidia", [HOT]), [95]) == [(0, True)]
    assert temperatures(RuleReadings("nvidia", [HOT]), [88, 88, 92]) == [(2, True)]


def test_each_device_is_told_for_itself_and_the_source_as_a_whole_is_the_node() -> None:
    readings = RuleReadings("nvidia", [HOT])
    assert temperatures(readings, [95]) == [(0, True)]
    assert temperatures(readings, [95], "npu1") == [(0, True)]
    (reported,) = readings.take("*", {"celsius": 95.0}, 0)
    assert isinstance(reported, Edge)
    assert reported.device == "node"


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_reading_that_is_no_number_says_nothing(odd: float) -> None:
    readings = RuleReadings("nvidia", [HOT], [DAY])
    assert readings.take("npu0", {"celsius": odd, "ecc_total": odd}, 0) == []
    assert readings.take("npu0", {"ecc_total": -1.0}, 0) == []


def test_other_rules_or_another_part_in_the_slot_begin_anew() -> None:
    readings = RuleReadings("nvidia", [HOT])
    temperatures(readings, [95])
    readings.forget()
    assert temperatures(readings, [95]) == [(0, True)]
    readings.judge_by([HOT], [])
    assert temperatures(readings, [95]) == [(0, True)]


def test_a_counter_is_told_when_it_has_risen_enough_to_matter() -> None:
    steps = [(0, 5.0), (1000, 104.0), (1001, 105.0), (1002, 300.0), (1338, 300.0), (1339, 310.0)]
    assert counts(RuleReadings("nvidia", counter=[DAY]), steps) == [(0, 5), (1001, 105), (1339, 310)]


def test_a_counter_that_rises_a_little_is_told_after_a_while_and_one_that_stands_never() -> None:
    steps = [(0, 5.0), (100, 6.0), (1349, 6.0), (1350, 6.0), (5000, 6.0)]
    assert counts(RuleReadings("nvidia", counter=[DAY]), steps) == [(0, 5), (1350, 6)]


def test_no_counter_is_told_more_often_than_every_ten_seconds() -> None:
    steps = [(second, 1000.0 * second) for second in range(31)]
    assert [at_s for at_s, _ in counts(RuleReadings("nvidia", counter=[MINUTE]), steps)] == [0, 10, 20, 30]


def test_the_most_demanding_rule_of_a_metric_sets_the_pace() -> None:
    steps = [(0, 0.0), (10, 10.0), (20, 20.0)]
    assert len(counts(RuleReadings("nvidia", counter=[DAY, MINUTE]), steps)) == 3


def test_nothing_is_lost_of_a_counter_that_begins_anew() -> None:
    steps = [(0, 5.0), (400, 50.0), (401, 2.0), (402, 3.0), (700, 1.0), (800, 1.0)]
    assert counts(RuleReadings("nvidia", counter=[DAY]), steps) == [
        (0, 5),
        (401, 50),
        (401, 2),
        (800, 3),
        (800, 1),
    ]


def test_nothing_is_told_that_no_rule_names() -> None:
    many: list[Input] = RuleReadings("nvidia").take("npu0", {"celsius": 99.0, "ecc_total": 5.0}, 0)
    assert many == []


LINK = CounterRule(id="l", code="L", metric="recoveries_total.*", increase=3, time_window_ns=3600 * SECOND_NS)
LINK_7 = CounterRule(
    id="m", code="M", metric="recoveries_total.7", increase=80, time_window_ns=60 * SECOND_NS
)


def marks(
    readings: RuleReadings, values: Mapping[str, float], at_s: int, device: str = "gpu0"
) -> list[tuple[str, int]]:
    """(metric, value) of the marks that these readings make."""
    made = readings.take(device, values, at_s * SECOND_NS)
    return [(each.metric, each.value) for each in made if isinstance(each, CounterMark)]


def test_each_counter_of_a_family_is_told_for_itself_and_no_other_reading_is() -> None:
    readings = RuleReadings("nvidia", counter=[LINK])
    values = {"recoveries_total": 9.0, "recoveries_total.0": 1.0, "recoveries_total.1": 2.0, "re.0": 3.0}
    assert marks(readings, values, 0) == [("recoveries_total.0", 1), ("recoveries_total.1", 2)]
    assert marks(readings, values | {"recoveries_total.1": 5.0}, 60) == [("recoveries_total.1", 5)]
    assert marks(readings, values, 60, "gpu1") == [("recoveries_total.0", 1), ("recoveries_total.1", 2)]


def test_a_counter_that_is_named_and_of_a_family_too_is_told_once_as_often_as_either_needs() -> None:
    readings = RuleReadings("nvidia", counter=[LINK, LINK_7])
    told = [marks(readings, {"recoveries_total.7": float(at_s)}, at_s) for at_s in range(0, 40, 10)]
    assert told == [[("recoveries_total.7", at_s)] for at_s in range(0, 40, 10)]


def test_counters_are_told_in_the_order_of_the_rules() -> None:
    readings = RuleReadings("nvidia", counter=[LINK, DAY])
    values = {"ecc_total": 1.0, "recoveries_total.3": 2.0}
    assert marks(readings, values, 0) == [("recoveries_total.3", 2), ("ecc_total", 1)]
