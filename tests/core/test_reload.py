"""New tables under open conditions."""

from typing import Any

from nodeagent.core.catalog.catalog import Catalog, ClearOn, Row
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Event, EventKind, Level, TablesRejected, Verdict
from tests.core.build import (
    GRACEFUL,
    HBM,
    LINK_DOWN,
    begin,
    catalog,
    condition,
    emitted,
    lasting,
    ns,
    of,
    open_codes,
    repeat,
    row,
    run,
    signal,
    stands,
    wait,
)

BEFORE = catalog(
    row(HBM, Level.RESTART_NPU),
    row(LINK_DOWN),
    duration=[lasting(LINK_DOWN, 20, 60)],
    frequency=[repeat(HBM, 3), repeat("PreSeparateNPU", 1)],
)


def after(*rows: Row, **words: Any) -> Catalog:
    return catalog(*rows, digest="second", **words)


def reload(engine: Engine, at_s: float) -> list[Event]:
    return run(engine, [(at_s, CatalogChanged(digest="second"))])


def test_open_conditions_take_the_level_of_the_new_row() -> None:
    engine = begin(BEFORE, after(row(HBM, Level.PRE_SEPARATE_NPU, name="HBM")))
    run(engine, [(1, signal(HBM))])
    events = reload(engine, 2)
    assert emitted(events) == [("tables_reloaded", "node", ""), ("level_changed", "npu0", HBM)]
    assert (events[1].condition_level, events[1].verdict, events[1].name) == (
        Level.PRE_SEPARATE_NPU,
        Verdict.NO_NEW_JOBS,
        "HBM",
    )


def test_a_condition_whose_row_is_gone_keeps_its_level() -> None:
    engine = begin(BEFORE, after())
    run(engine, [(1, signal(HBM))])
    assert emitted(reload(engine, 2)) == [("tables_reloaded", "node", "")]
    assert condition(engine, HBM).level is Level.RESTART_NPU


def test_nothing_that_was_closed_opens_again() -> None:
    engine = begin(BEFORE, after(row(HBM, Level.SEPARATE_NPU, clear_on=ClearOn(operator=True))))
    run(engine, [(1, signal(HBM)), (2, signal(HBM, "recover"))])
    assert emitted(reload(engine, 3)) == [("tables_reloaded", "node", "")]


def test_a_lowered_threshold_fires_at_the_next_occurrence_only() -> None:
    engine = begin(BEFORE, after(row(HBM), frequency=[repeat(HBM, 1)]))
    run(engine, [(1, signal(HBM)), (2, signal(HBM))])
    assert of(reload(engine, 3), EventKind.PROMOTED) == []
    assert wait(engine, 4) == []
    assert emitted(run(engine, [(5, signal(HBM))])) == [("promoted", "npu0", HBM)]


def test_a_shorter_time_out_that_has_passed_gives_its_level_and_counts_nothing() -> None:
    rules: dict[str, Any] = {"duration": [lasting(LINK_DOWN, 5, 60)], "frequency": [repeat(LINK_DOWN, 1)]}
    engine = begin(BEFORE, after(row(LINK_DOWN), **rules))
    run(engine, [(1, signal(LINK_DOWN))])
    assert emitted(reload(engine, 10)) == [
        ("tables_reloaded", "node", ""),
        ("level_changed", "npu0", LINK_DOWN),
    ]
    assert wait(engine, 100) == []


def test_a_promotion_whose_rule_is_gone_is_released() -> None:
    engine = begin(BEFORE, after())
    run(engine, [(1, signal("PreSeparateNPU"))])
    assert emitted(reload(engine, 2)) == [
        ("tables_reloaded", "node", ""),
        ("released", "npu0", "PreSeparateNPU"),
    ]


def test_a_promotion_whose_rule_names_its_code_no_longer_is_released() -> None:
    rule = repeat(HBM, 1, id="repeat-PreSeparateNPU")
    engine = begin(BEFORE, after(row(HBM), frequency=[rule]))
    run(engine, [(1, signal("PreSeparateNPU"))])
    assert ("released", "npu0", "PreSeparateNPU") in emitted(reload(engine, 2))


def test_a_promotion_that_awaits_correlation_is_not_hurried_by_a_shorter_one() -> None:
    slow, fast = repeat(HBM, 2, correlation_ns=ns(30)), repeat(HBM, 2, correlation_ns=0)
    engine = begin(catalog(row(HBM), frequency=[slow]), after(row(HBM), frequency=[fast]), chips=2)
    run(engine, [(1, signal(HBM)), (2, signal(HBM))])
    assert emitted(reload(engine, 10)) == [("tables_reloaded", "node", ""), ("verdict_changed", "npu0", "")]
    assert wait(engine, 100) == []
    assert emitted(run(engine, [(101, signal(HBM))])) == [("promoted", "npu0", HBM)]


def test_a_promotion_whose_rule_changed_takes_the_new_level() -> None:
    rule = repeat("PreSeparateNPU", 1, level=Level.SEPARATE_NPU, release_ns=ns(60))
    engine = begin(BEFORE, after(frequency=[rule]))
    run(engine, [(1, signal("PreSeparateNPU"))])
    assert emitted(reload(engine, 2))[1:] == [("level_changed", "npu0", "PreSeparateNPU")]
    assert stands(engine)[0] is Level.SEPARATE_NPU


def test_a_new_way_to_close_applies_from_now_and_is_emitted_as_of_now() -> None:
    first = catalog(row(HBM, clear_on=ClearOn(reset=True)))
    engine = begin(first, after(row(HBM, clear_on=ClearOn(reset=True, quiet_ns=ns(60)))))
    run(engine, [(1, signal(HBM, "once"))])
    events = reload(engine, 1000)
    assert [(event.kind, event.at_ns) for event in events if event.kind is EventKind.CLEARED] == [
        (EventKind.CLEARED, ns(1000))
    ]


def test_a_longer_quiet_time_reaches_conditions_that_are_open() -> None:
    first = catalog(row("OOM", clear_on=ClearOn(quiet_ns=ns(60))))
    engine = begin(first, after(row("OOM", clear_on=ClearOn(quiet_ns=ns(600)))))
    run(engine, [(1, signal("OOM", "once"))])
    reload(engine, 30)
    assert wait(engine, 601) == []
    assert emitted(wait(engine, 601, extra_ns=1)) == [("cleared", "npu0", "OOM")]


def test_another_mode_takes_each_level_to_where_it_would_stand_by_now() -> None:
    engine = begin(catalog(), after(**GRACEFUL))
    run(engine, [(0, signal("RestartBusiness"))])
    events = reload(engine, 30)
    assert [(event.verdict, event.handling.value) for event in events[1:]] == [
        (Verdict.NO_NEW_JOBS, "RESTART_JOB")
    ]


def test_all_at_once_a_stricter_count_another_way_to_close_a_rule_gone_levels_up_and_down() -> None:
    first = catalog(
        row(HBM, Level.RESTART_NPU),
        row("XID_13", Level.PRE_SEPARATE_NPU, clear_on=ClearOn(operator=True)),
        row("XID_48", Level.SUB_HEALTH),
        frequency=[repeat(HBM, 3), repeat("RestartNPU", 1)],
    )
    second = after(
        row(HBM, Level.PRE_SEPARATE_NPU),
        row("XID_13", Level.PRE_SEPARATE_NPU, clear_on=ClearOn(quiet_ns=ns(60))),
        row("XID_48", Level.SEPARATE_NPU),
        frequency=[repeat(HBM, 2)],
    )
    engine = begin(first, second, chips=2)
    run(engine, [(1, signal(HBM)), (2, signal(HBM, "recover")), (3, signal(HBM))])
    run(engine, [(4, signal("XID_13", "once")), (5, signal("XID_48"))])
    run(engine, [(6, signal("RestartNPU", device="npu1")), (7, signal("RestartNPU", "recover", "npu1"))])
    events = reload(engine, 30)
    assert emitted(events) == [
        ("tables_reloaded", "node", ""),
        ("level_changed", "npu0", HBM),
        ("level_changed", "npu0", "XID_48"),
        ("released", "npu1", "RestartNPU"),
    ]
    assert [event.condition_level for event in events[1:3]] == [Level.PRE_SEPARATE_NPU, Level.SEPARATE_NPU]
    assert emitted(wait(engine, 65)) == [("cleared", "npu0", "XID_13")]
    assert emitted(run(engine, [(70, signal(HBM))])) == [("promoted", "npu0", HBM)]


def test_a_rewritten_code_stays_the_same_condition() -> None:
    engine = begin(catalog(row("20001002")), after(row("020001002")))
    run(engine, [(1, signal("20001002"))])
    reload(engine, 2)
    assert emitted(run(engine, [(3, signal("20001002")), (4, signal("020001002", "recover"))])) == [
        ("cleared", "npu0", "020001002")
    ]


def test_the_same_catalog_again_changes_nothing_and_is_not_stored() -> None:
    engine = begin(BEFORE)
    outcome = engine.step(ns(1), CatalogChanged(digest="first"))
    assert (outcome.events, outcome.records) == ((), ())


def test_tables_that_were_rejected_are_reported_and_change_nothing() -> None:
    engine = begin(BEFORE)
    run(engine, [(1, signal(HBM))])
    (rejected,) = run(engine, [(2, TablesRejected(reason="kernel.toml:3: level"))])
    assert (rejected.kind, rejected.why) == (EventKind.TABLES_REJECTED, "kernel.toml:3: level")
    assert open_codes(engine) == [("die0", HBM)]
