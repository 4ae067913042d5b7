"""Readings that cross a bound become faults once that has lasted, and end below the other bound."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Level, Started, Tick
from tests.core.build import (
    active,
    back,
    begin,
    catalog,
    condition,
    edge,
    emitted,
    hot,
    lost,
    ns,
    open_codes,
    order,
    rising,
    row,
    run,
    stands,
    wait,
)

TABLES = catalog(row("HOT", Level.PRE_SEPARATE_NPU), row("OTHER"), threshold=[hot("HOT", 60)])


def test_above_for_longer_than_the_rule_asks_is_a_fault_of_the_device() -> None:
    engine = begin(TABLES)
    assert run(engine, [(1, edge(True, value=93.5))]) == []
    assert wait(engine, 61) == []
    (raised,) = wait(engine, 61, extra_ns=1)
    assert (raised.device, raised.code, raised.condition_level) == ("npu0", "HOT", Level.PRE_SEPARATE_NPU)
    assert raised.evidence == {"rule": "above-HOT", "metric": "celsius", "value": "93.5", "above": "90"}
    assert raised.at_ns == ns(61) + 1


def test_below_before_that_it_was_nothing() -> None:
    engine = begin(TABLES)
    assert run(engine, [(1, edge(True)), (60, edge(False)), (61, edge(True))]) == []
    assert wait(engine, 121) == []
    assert emitted(wait(engine, 122)) == [("raised", "npu0", "HOT")]


def test_below_the_clear_bound_it_is_over() -> None:
    engine = begin(TABLES)
    run(engine, [(1, edge(True))])
    wait(engine, 100)
    assert emitted(run(engine, [(101, edge(False, value=80))])) == [("cleared", "npu0", "HOT")]
    assert stands(engine)[0] is Level.NOT_HANDLE


def test_the_same_edge_again_changes_nothing_and_is_not_stored() -> None:
    engine = begin(TABLES)
    run(engine, [(1, edge(True))])
    assert engine.step(ns(2), edge(True)).records == ()
    assert engine.step(ns(3), edge(False, rule="no-such-rule")).records == ()
    assert engine.step(ns(4), edge(True, device="npu7")).records == ()
    assert emitted(wait(engine, 62)) == [("raised", "npu0", "HOT")]
    assert begin(TABLES).step(ns(1), edge(False)).records == ()


def test_what_a_person_closed_comes_back_once_the_reading_was_above_for_as_long_again() -> None:
    by_hand = row("HOT", clear_on=ClearOn(recover=True, operator=True))
    engine = begin(catalog(by_hand, threshold=[hot("HOT", 60)]))
    run(engine, [(1, edge(True)), (100, order("release"))])
    assert run(engine, [(101, edge(True))]) == []
    assert wait(engine, 160) == []
    assert emitted(wait(engine, 160, extra_ns=1)) == [("raised", "npu0", "HOT")]
    assert emitted(run(engine, [(200, edge(False))])) == [("cleared", "npu0", "HOT")]


def test_a_poll_of_fault_codes_neither_shows_nor_closes_it() -> None:
    engine = begin(TABLES)
    run(engine, [(1, edge(True))])
    wait(engine, 100)
    assert run(engine, [(101, active(begun_s=101))]) == []
    assert open_codes(engine) == [("die0", "HOT")]


def test_a_restart_loses_none_of_the_time_and_waits_for_the_source() -> None:
    engine = begin(TABLES)
    carried = engine.carry()
    (record,) = engine.step(ns(10), edge(True)).records
    rebuilt = Engine({"first": TABLES})
    for cell in carried:
        rebuilt.replay(ns(0), cell)
    rebuilt.replay(ns(10), record)
    rebuilt.resume(ns(10))
    rebuilt.step(ns(65), Started(boot_id="boot-1", version="1"))
    assert wait(rebuilt, 75) == []
    assert emitted(run(rebuilt, [(76, edge(True)), (76, back())])) == [("raised", "npu0", "HOT")]


def test_a_source_that_was_lost_first_says_whether_it_is_still_above() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(1, edge(True)), (30, lost()), (200, Tick())]))[1:] == [
        ("verdict_changed", "npu0", "")
    ]
    events = run(engine, [(201, edge(False)), (201, back())])
    assert "HOT" not in [event.code for event in events]
    assert wait(engine, 400) == []


def test_a_rule_that_is_gone_takes_its_fault_with_it() -> None:
    engine = begin(TABLES, catalog(row("HOT"), digest="second"))
    run(engine, [(1, edge(True))])
    wait(engine, 100)
    events = run(engine, [(101, CatalogChanged(digest="second"))])
    assert ("cleared", "npu0", "HOT") in emitted(events)
    assert run(engine, [(102, edge(False))]) == []


def test_a_changed_bound_raises_nothing_by_itself_and_begins_anew_with_the_next_reading() -> None:
    sooner = catalog(row("HOT"), threshold=[hot("HOT", 5, above=80.0, clear_below=70.0)], digest="second")
    engine = begin(TABLES, sooner)
    assert emitted(run(engine, [(1, edge(True)), (50, CatalogChanged(digest="second"))])) == [
        ("tables_reloaded", "node", "")
    ]
    assert wait(engine, 100) == []
    assert emitted(run(engine, [(101, edge(True)), (107, Tick())])) == [("raised", "npu0", "HOT")]


def test_a_fault_that_stands_is_kept_over_changed_bounds() -> None:
    sooner = catalog(row("HOT"), threshold=[hot("HOT", 5, above=80.0, clear_below=70.0)], digest="second")
    engine = begin(TABLES, sooner)
    run(engine, [(1, edge(True)), (100, CatalogChanged(digest="second"))])
    assert condition(engine, "HOT").level is Level.NOT_HANDLE
    assert emitted(run(engine, [(101, edge(False))])) == [("cleared", "npu0", "HOT")]


def test_a_rule_that_becomes_one_of_another_kind_takes_its_fault_with_it() -> None:
    counted = catalog(row("HOT"), counter=[rising("HOT", id="above-HOT")], digest="second")
    engine = begin(TABLES, counted)
    run(engine, [(1, edge(True))])
    wait(engine, 62)
    assert open_codes(engine) == [("die0", "HOT")]
    assert ("cleared", "npu0", "HOT") in emitted(run(engine, [(70, CatalogChanged(digest="second"))]))
    assert run(engine, [(71, edge(True)), (200, edge(False))]) == []
