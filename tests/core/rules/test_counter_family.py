"""A counter rule over a family of readings: each counts for itself, and one fault names those that rise."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Condition, Input, Level
from nodeagent.core.rules.counter import Tally
from tests.core.build import begin, catalog, emitted, mark, open_codes, order, repeat, rising, row, run, wait

LINKS = catalog(
    row("FLAPS", Level.SUB_HEALTH), counter=[rising("FLAPS", 3, window_s=3600, metric="recoveries_total.*")]
)


def link(number: int, value: int) -> Input:
    return mark(value, metric=f"recoveries_total.{number}")


def the_fault(engine: Engine) -> Condition:
    (condition,) = engine.view().conditions
    return condition


def test_what_one_reading_rises_by_is_not_added_to_what_another_does() -> None:
    engine = begin(LINKS)
    steps = [(1.0, link(number, 0)) for number in range(9)] + [(2.0, link(number, 2)) for number in range(9)]
    assert run(engine, steps) == []


def test_the_one_that_rises_raises_the_fault_and_is_named() -> None:
    engine = begin(LINKS)
    (raised,) = run(engine, [(1, link(14, 502)), (1, link(15, 0)), (2, link(14, 505))])
    assert (raised.device, raised.code) == ("npu0", "FLAPS")
    assert raised.evidence == {
        "rule": "rise-FLAPS",
        "metric": "recoveries_total",
        "part": "14",
        "value": "505",
        "increase": "3",
    }


def test_a_second_one_joins_the_fault_that_is_open_and_is_named_there() -> None:
    engine = begin(LINKS)
    run(engine, [(1, link(14, 0)), (1, link(9, 0)), (2, link(14, 3))])
    assert run(engine, [(3, link(9, 4))]) == []
    assert (the_fault(engine).backing.evidence["part"], the_fault(engine).presence.count) == ("9, 14", 2)


def test_the_fault_ends_only_once_none_of_them_has_risen_for_a_whole_window() -> None:
    engine = begin(LINKS)
    run(engine, [(1, link(14, 0)), (1, link(9, 0)), (2, link(14, 3)), (1000, link(9, 3))])
    assert wait(engine, 3700) == []
    assert wait(engine, 4600) == []
    assert emitted(wait(engine, 4600, extra_ns=1)) == [("cleared", "npu0", "FLAPS")]


def test_what_a_person_closed_is_measured_anew_in_each_of_them() -> None:
    by_hand = row("FLAPS", clear_on=ClearOn(recover=True, operator=True))
    engine = begin(catalog(by_hand, counter=[rising("FLAPS", 3, metric="recoveries_total.*")]))
    run(engine, [(1, link(14, 0)), (1, link(9, 0)), (2, link(14, 3)), (2, link(9, 3)), (3, order("release"))])
    assert open_codes(engine) == []
    assert run(engine, [(4, link(14, 5)), (4, link(9, 5))]) == []
    assert emitted(run(engine, [(5, link(9, 6))])) == [("raised", "npu0", "FLAPS")]


def test_each_that_joins_is_an_occurrence() -> None:
    tables = catalog(
        row("FLAPS", Level.SUB_HEALTH),
        counter=[rising("FLAPS", 3, metric="recoveries_total.*")],
        frequency=[repeat("FLAPS", times=2)],
    )
    engine = begin(tables)
    run(engine, [(1, link(1, 0)), (1, link(2, 0)), (2, link(1, 3)), (3, link(2, 3))])
    assert [promotion.code for promotion in engine.view().promotions] == ["FLAPS"]


def test_a_reading_is_watched_by_the_rule_that_names_it_and_by_that_of_its_family() -> None:
    rules = [
        rising("FLAPS", 3, metric="recoveries_total.*"),
        rising("STORM", 2, metric="recoveries_total.7"),
    ]
    engine = begin(catalog(row("FLAPS"), row("STORM"), counter=rules))
    events = run(engine, [(1, link(7, 0)), (2, link(7, 2)), (3, link(7, 3))])
    assert emitted(events) == [("raised", "npu0", "STORM"), ("raised", "npu0", "FLAPS")]


def test_a_rule_that_is_gone_takes_all_that_it_counted_with_it() -> None:
    engine = begin(LINKS, catalog(row("FLAPS"), digest="second"))
    run(engine, [(1, link(1, 0)), (1, link(2, 0)), (2, link(1, 3)), (3, CatalogChanged(digest="second"))])
    assert open_codes(engine) == []
    assert not any(isinstance(one.cell, Tally) for one in engine.carry())
