"""Counters that rise by too much within a window are faults, until they have not for a whole window."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Level, Started
from nodeagent.core.rules.counter import Tally
from tests.core.build import (
    active,
    begin,
    catalog,
    emitted,
    mark,
    ns,
    open_codes,
    order,
    rising,
    row,
    run,
    seen,
    wait,
)

TABLES = catalog(row("STORM", Level.SUB_HEALTH), counter=[rising("STORM", 100, window_s=3600)])


def tallied(engine: Engine) -> Tally:
    (tally,) = [one.cell for one in engine.carry() if isinstance(one.cell, Tally)]
    return tally


def test_what_it_shows_first_has_not_risen() -> None:
    engine = begin(TABLES)
    assert run(engine, [(1, mark(5000)), (2, mark(5099))]) == []


def test_a_rise_within_the_window_is_a_fault_of_the_device() -> None:
    engine = begin(TABLES)
    (raised,) = run(engine, [(1, mark(5000)), (2, mark(5040)), (3600, mark(5100))])
    assert (raised.device, raised.code, raised.condition_level) == ("npu0", "STORM", Level.SUB_HEALTH)
    assert raised.evidence == {
        "rule": "rise-STORM",
        "metric": "corrected_total",
        "value": "5100",
        "increase": "100",
    }


def test_a_rise_exactly_a_window_old_still_counts_and_an_older_one_does_not() -> None:
    engine = begin(TABLES)
    run(engine, [(1, mark(0)), (2, mark(50))])
    assert emitted(run(engine, [(3602, mark(100))])) == [("raised", "npu0", "STORM")]
    engine = begin(TABLES)
    run(engine, [(1, mark(0)), (2, mark(50))])
    assert engine.step(ns(3602) + 1, mark(100)).events == ()


def test_a_counter_that_began_anew_goes_on_counting() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(1, mark(1000)), (2, mark(1060)), (3, mark(0)), (4, mark(39))])) == []
    assert emitted(run(engine, [(5, mark(40))])) == [("raised", "npu0", "STORM")]


def test_a_counter_for_life_that_comes_back_lower_has_lost_its_newest_part_and_has_not_risen() -> None:
    for_life = catalog(row("STORM"), counter=[rising("STORM", 100, window_s=3600, lifetime=True)])
    engine = begin(for_life)
    assert run(engine, [(1, mark(54_731_746)), (2, mark(54_731_700)), (3, mark(0)), (4, mark(99))]) == []
    assert emitted(run(engine, [(5, mark(100))])) == [("raised", "npu0", "STORM")]


def test_a_counter_for_life_that_comes_back_lower_does_not_prolong_the_fault() -> None:
    for_life = catalog(row("STORM"), counter=[rising("STORM", 100, window_s=3600, lifetime=True)])
    engine = begin(for_life)
    run(engine, [(1, mark(0)), (2, mark(100)), (3000, mark(50))])
    assert wait(engine, 3602) == []
    assert emitted(wait(engine, 3602, extra_ns=1)) == [("cleared", "npu0", "STORM")]


def test_it_recovers_after_a_window_in_which_the_rule_was_not_met() -> None:
    engine = begin(TABLES)
    run(engine, [(1, mark(0)), (2, mark(100)), (100, mark(150)), (3000, mark(160))])
    assert wait(engine, 6600) == []
    assert emitted(wait(engine, 6600, extra_ns=1)) == [("cleared", "npu0", "STORM")]
    assert emitted(run(engine, [(7000, mark(250)), (7001, mark(260))])) == [("raised", "npu0", "STORM")]


def test_while_it_stands_it_is_neither_raised_again_nor_closed_by_a_poll() -> None:
    engine = begin(TABLES)
    run(engine, [(1, mark(0)), (2, mark(100))])
    assert run(engine, [(3, mark(300)), (4, active(begun_s=4))]) == []
    assert open_codes(engine) == [("die0", "STORM")]


def test_what_a_person_closed_comes_back_once_as_much_has_risen_again() -> None:
    """A storm without an end would else be reported once, and never again."""
    by_hand = row("STORM", clear_on=ClearOn(recover=True, operator=True))
    engine = begin(catalog(by_hand, counter=[rising("STORM", 100, window_s=3600)]))
    run(engine, [(1, mark(0)), (2, mark(100)), (3, order("release"))])
    assert run(engine, [(4, mark(199))]) == []
    assert emitted(run(engine, [(5, mark(200))])) == [("raised", "npu0", "STORM")]
    assert wait(engine, 3605) == []
    assert emitted(wait(engine, 3605, extra_ns=1)) == [("cleared", "npu0", "STORM")]


def test_an_unchanged_value_or_an_unknown_device_or_metric_is_not_stored() -> None:
    engine = begin(TABLES)
    run(engine, [(1, mark(5))])
    assert engine.step(ns(2), mark(5)).records == ()
    assert engine.step(ns(2), mark(5, device="npu7")).records == ()
    assert engine.step(ns(2), mark(5, metric="other_total")).records == ()


def test_each_rule_of_a_metric_counts_for_itself() -> None:
    tables = catalog(
        row("STORM"),
        row("SLOW"),
        counter=[rising("STORM", 100, window_s=60), rising("SLOW", 150, window_s=3600)],
    )
    engine = begin(tables)
    events = run(engine, [(1, mark(0)), (2, mark(90)), (100, mark(151))])
    assert emitted(events) == [("raised", "npu0", "SLOW")]


def test_memory_is_bounded_and_rises_close_to_each_other_are_one() -> None:
    engine = begin(TABLES)
    run(engine, [(index, mark(index)) for index in range(1, 100)])
    assert len(tallied(engine).rises) == 7
    assert sum(increase for _, increase in tallied(engine).rises) == 98


def test_a_rule_that_is_gone_takes_its_fault_with_it() -> None:
    engine = begin(TABLES, catalog(row("STORM"), digest="second"))
    run(engine, [(1, mark(0)), (2, mark(100))])
    assert ("cleared", "npu0", "STORM") in emitted(run(engine, [(3, CatalogChanged(digest="second"))]))
    assert not any(isinstance(one.cell, Tally) for one in engine.carry())


def test_one_that_only_a_person_closes_is_not_closed_by_other_new_tables() -> None:
    by_hand = row("STORM", clear_on=ClearOn(operator=True))
    rules = [rising("STORM", 100)]
    engine = begin(
        catalog(by_hand, counter=rules), catalog(by_hand, row("X"), counter=rules, digest="second")
    )
    run(engine, [(1, mark(0)), (2, mark(100))])
    wait(engine, 9000)
    run(engine, [(9001, CatalogChanged(digest="second"))])
    assert open_codes(engine) == [("die0", "STORM")]


def test_a_smaller_increase_fires_with_the_next_rise_only() -> None:
    fewer = catalog(row("STORM"), counter=[rising("STORM", 10)], digest="second")
    engine = begin(TABLES, fewer)
    run(engine, [(1, mark(0)), (2, mark(50))])
    assert emitted(run(engine, [(3, CatalogChanged(digest="second"))])) == [("tables_reloaded", "node", "")]
    assert emitted(run(engine, [(4, mark(51))])) == [("raised", "npu0", "STORM")]


STAYS = row("STORM", Level.PRE_SEPARATE_NPU, clear_on=ClearOn(reset=True, reboot=True, operator=True))


def test_one_that_does_not_end_with_its_rise_ends_with_the_boot_and_is_measured_anew() -> None:
    engine = begin(catalog(STAYS, counter=[rising("STORM", 100, window_s=3600)]))
    run(engine, [(1, mark(0)), (2, mark(100))])
    assert wait(engine, 90_000) == []
    run(engine, [(90_001, Started(boot_id="boot-2", version="1")), (90_002, seen("npu0", "die0"))])
    assert open_codes(engine) == [("die0", "STORM")]
    booted = run(engine, [(90_003, active(begun_s=90_003)), (90_004, mark(99)), (90_005, mark(199))])
    assert [each for each in emitted(booted) if each[2]] == [
        ("cleared", "npu0", "STORM"),
        ("raised", "npu0", "STORM"),
    ]


def test_one_that_ends_with_its_rise_is_not_ended_by_the_boot() -> None:
    engine = begin(TABLES)
    run(engine, [(1, mark(0)), (2, mark(100))])
    run(engine, [(3, Started(boot_id="boot-2", version="1")), (4, seen("npu0", "die0"))])
    assert [each for each in emitted(run(engine, [(5, active(begun_s=5))])) if each[2]] == []
