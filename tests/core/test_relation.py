"""Faults near each other: a companion goes with its root, a pair changes a level, one ends the other."""

from typing import Any

import pytest

from nodeagent.core.catalog import Catalog, ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import Absorbed, CatalogChanged, EventKind, Input, Level, Verdict, Window
from tests.core.build import (
    active,
    begin,
    catalog,
    condition,
    held,
    lasting,
    ns,
    of,
    open_codes,
    order,
    related,
    repeat,
    row,
    run,
    signal,
    stands,
    told,
    wait,
    xid,
)

UCE, AI_CORE = "80E01801", "80C98009"
RETRY, LINK_DOWN = "8C1F860B", "81078603"
FOR_EVER = ClearOn(operator=True)

ROWS = (
    row("XID_79", Level.SEPARATE_NPU, clear_on=FOR_EVER),
    row("XID_48", Level.RESTART_NPU, clear_on=FOR_EVER),
    row("XID_64", Level.SEPARATE_NPU, clear_on=FOR_EVER),
    row("XID_92", Level.SUB_HEALTH, clear_on=FOR_EVER),
    row("XID_45", Level.RESTART_BUSINESS, clear_on=FOR_EVER),
    row("XID_154", Level.SUB_HEALTH, clear_on=FOR_EVER),
    row("XID_163", Level.SUB_HEALTH, clear_on=FOR_EVER),
    row("XID_162", notice=True),
    row(UCE, Level.RESTART_BUSINESS),
    row(AI_CORE, Level.RESTART_REQUEST),
    row(RETRY),
    row(LINK_DOWN),
)
COMPANIONS = (related("XID_45", "XID_*"), related("XID_154", "XID_*"), related(AI_CORE, UCE, within_s=5))
TABLES = catalog(*ROWS, relation=COMPANIONS)
PAIR = related(RETRY, LINK_DOWN, within_s=300, then="level", level=Level.SEPARATE_NPU)
LEVELS = catalog(*ROWS, relation=[PAIR], duration=[lasting(LINK_DOWN, 20, 60)])
CANCEL = catalog(*ROWS, relation=[related("XID_162", "XID_163", within_s=3600, then="cancel")])
GPU = "npu0"


def seen(engine: Engine, *steps: tuple[float, Input]) -> list[tuple[str, str, str]]:
    return told(run(engine, steps))


def gpu(code: str, device: str = GPU, **words: Any) -> Input:
    return xid(code, device, **words)


# --------------------------------------------------------------------------- absorb


def test_a_companion_of_an_open_root_opens_nothing_and_is_counted_there() -> None:
    engine = begin(TABLES)
    assert seen(engine, (1, gpu("XID_79")), (2, gpu("XID_45")), (3, gpu("XID_154")), (4, gpu("XID_154"))) == [
        ("raised", GPU, "XID_79")
    ]
    root = condition(engine, "XID_79")
    assert (root.count, root.evidence) == (4, {"companions": "XID_45, XID_154"})
    assert root.last_ns == ns(1)


def test_one_exactly_the_window_away_is_near_and_one_beyond_it_is_a_fault_of_its_own() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_79")))
    assert seen(engine, (181, gpu("XID_45"))) == []
    assert told(engine.step(ns(181) + 1, gpu("XID_45")).events) == [("raised", GPU, "XID_45")]


def test_a_companion_that_came_first_closes_as_absorbed_when_the_root_comes() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, gpu("XID_45")), (2, gpu("XID_45")), (3, gpu("XID_79"))])
    assert told(events) == [
        ("raised", GPU, "XID_45"),
        ("raised", GPU, "XID_79"),
        ("cleared", GPU, "XID_45"),
    ]
    assert events[-1].why == "absorbed: it goes with XID_79 on npu0"
    root = condition(engine, "XID_79")
    assert (root.count, root.evidence["companions"]) == (3, "XID_45")


@pytest.mark.parametrize("codes", [("XID_45", "XID_154"), ("XID_154", "XID_45")])
def test_of_two_companions_without_a_root_the_stricter_stays(codes: tuple[str, str]) -> None:
    engine = begin(TABLES)
    run(engine, [(1, gpu(codes[0])), (2, gpu(codes[1]))])
    assert open_codes(engine) == [("die0", "XID_45")]


def test_the_worse_of_two_is_never_hidden_behind_the_other() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_92")), (2, gpu("XID_45")))
    assert open_codes(engine) == [("die0", "XID_92"), ("die0", "XID_45")]


def test_windows_do_not_chain_over_companions() -> None:
    engine = begin(TABLES)
    seen(engine, (0, gpu("XID_79")), (170, gpu("XID_154")))
    assert seen(engine, (300, gpu("XID_45"))) == [("raised", GPU, "XID_45")]


def test_companions_of_another_device_are_faults_of_their_own() -> None:
    engine = begin(TABLES, chips=2)
    seen(engine, (1, gpu("XID_79")))
    assert seen(engine, (2, gpu("XID_45", "npu1"))) == [("raised", "npu1", "XID_45")]


def test_the_same_node_reaches_over_devices_and_the_same_job_only_over_its_own() -> None:
    def opened(same: str, job_of_other: str) -> list[tuple[str, str]]:
        engine = begin(catalog(*ROWS, relation=[related("XID_45", "XID_79", same=same)]), chips=2)
        run(engine, [(0, held("npu0", "a")), (0, held("npu1", job_of_other)), (1, gpu("XID_79", "npu0"))])
        run(engine, [(2, gpu("XID_45", "npu1"))])
        return open_codes(engine)

    both = [("die0", "XID_79"), ("die1", "XID_45")]
    assert opened("node", "b") == both[:1]
    assert opened("job", "a") == both[:1]
    assert opened("job", "b") == both


def test_of_several_roots_the_strictest_open_one_takes_the_companion() -> None:
    engine = begin(TABLES)
    run(engine, [(1, gpu("XID_79")), (2, gpu("XID_48")), (3, gpu("XID_45"))])
    assert [(one.code, one.count) for one in engine.view().conditions] == [("XID_79", 2), ("XID_48", 1)]


def test_a_companion_of_a_root_that_has_closed_is_told_in_a_notice() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_79")), (2, order("release")))
    (notice,) = run(engine, [(3, gpu("XID_45"))])
    assert (notice.kind, notice.code) == (EventKind.NOTICE, "XID_45")
    assert notice.why == "goes with XID_79 on npu0, which is over"
    assert open_codes(engine) == []


def test_absorbed_occurrences_are_not_counted_in_whichever_order_they_came() -> None:
    tables = catalog(*ROWS, relation=COMPANIONS, frequency=[repeat("XID_45", 2, burst_ns=0)])
    engine = begin(tables)
    run(engine, [(1, gpu("XID_45")), (2, gpu("XID_79")), (3, gpu("XID_45"))])
    windows = [one.cell for one in engine.carry() if isinstance(one.cell, Window)]
    assert [window.occurrences_ns for window in windows if window.code == "XID_45"] == [()]
    assert seen(engine, (1000, gpu("XID_45"))) == [("raised", GPU, "XID_45")]


def test_an_injected_fault_is_neither_companion_nor_root() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_79", injected=True)))
    assert seen(engine, (2, gpu("XID_45"))) == [("raised", GPU, "XID_45")]
    seen(engine, (3, gpu("XID_79")))
    assert seen(engine, (4, gpu("XID_45", injected=True))) == [("raised", GPU, "XID_45")]


# --------------------------------------------------------------------------- companions that stay


def test_a_companion_that_polls_go_on_showing_stays_absorbed_while_its_root_is_open() -> None:
    engine = begin(TABLES)
    seen(engine, (1, signal(UCE)), (2, signal(AI_CORE)))
    assert seen(engine, (100, active(UCE, AI_CORE, begun_s=99))) == []
    assert seen(engine, (101, signal(UCE, "recover"))) == [("cleared", GPU, UCE)]
    assert seen(engine, (102, active(AI_CORE, begun_s=101))) == [("raised", GPU, AI_CORE)]


def test_a_companion_that_came_first_stays_absorbed_too() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(AI_CORE)), (2, signal(UCE))])
    assert seen(engine, (100, active(UCE, AI_CORE, begun_s=99))) == []
    assert open_codes(engine) == [("die0", UCE)]


@pytest.mark.parametrize("gone", [signal(AI_CORE, "recover"), active(UCE, begun_s=9)])
def test_a_companion_that_was_gone_and_comes_again_later_is_a_fault(gone: Input) -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE)), (10, gone)])
    assert not any(isinstance(one.cell, Absorbed) for one in engine.carry())
    assert seen(engine, (20, active(UCE, AI_CORE, begun_s=19))) == [("raised", GPU, AI_CORE)]


def test_a_new_occurrence_far_from_the_root_ends_the_absorption() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE))])
    assert seen(engine, (60, signal(AI_CORE))) == [("raised", GPU, AI_CORE)]


# --------------------------------------------------------------------------- level


def test_a_pair_gives_the_level_in_whichever_order_it_comes() -> None:
    engine = begin(LEVELS)
    events = run(engine, [(1, signal(RETRY)), (200, signal(LINK_DOWN))])
    assert told(events) == [
        ("raised", GPU, RETRY),
        ("raised", GPU, LINK_DOWN),
        ("level_changed", GPU, RETRY),
    ]
    assert events[-1].why == "beside a related fault, by level-8C1F860B: NotHandleFault -> SeparateNPU"
    engine = begin(LEVELS)
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(LINK_DOWN, "recover"))])
    (raised,) = run(engine, [(3, signal(RETRY))])
    assert (raised.kind, raised.condition_level) == (EventKind.RAISED, Level.SEPARATE_NPU)
    assert raised.verdict is Verdict.ISOLATE


def test_beyond_the_window_there_is_no_pair() -> None:
    engine = begin(LEVELS)
    run(engine, [(1, signal(LINK_DOWN)), (301, signal(RETRY, "once"))])
    assert condition(engine, RETRY).level is Level.SEPARATE_NPU
    engine = begin(LEVELS)
    run(engine, [(1, signal(LINK_DOWN)), (301.1, signal(RETRY))])
    assert condition(engine, RETRY).level is Level.NOT_HANDLE


def test_the_level_stays_until_the_condition_closes() -> None:
    engine = begin(LEVELS)
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(RETRY)), (3, signal(LINK_DOWN, "recover"))])
    wait(engine, 1000)
    assert stands(engine)[0] is Level.SEPARATE_NPU
    run(engine, [(1001, signal(RETRY, "recover"))])
    (raised,) = run(engine, [(1002, signal(RETRY))])
    assert raised.condition_level is Level.NOT_HANDLE


def test_a_pair_may_also_lower_and_of_two_rules_the_stricter_counts() -> None:
    lower = related("XID_48", "XID_154", then="level", level=Level.FREE_RESTART_NPU, id="lower")
    raise_ = related("XID_48", "XID_64", then="level", level=Level.SEPARATE_NPU, id="raise")
    engine = begin(catalog(*ROWS, relation=[lower, raise_]))
    run(engine, [(1, gpu("XID_48")), (2, gpu("XID_154"))])
    assert condition(engine, "XID_48").level is Level.FREE_RESTART_NPU
    run(engine, [(3, gpu("XID_64"))])
    assert condition(engine, "XID_48").level is Level.SEPARATE_NPU


def test_an_absorbed_fault_makes_a_pair_as_any_other() -> None:
    lower = related("XID_48", "XID_154", then="level", level=Level.FREE_RESTART_NPU)
    engine = begin(catalog(*ROWS, relation=[lower, related("XID_154", "XID_48")]))
    run(engine, [(1, gpu("XID_48")), (2, gpu("XID_154"))])
    assert [(one.code, one.level) for one in engine.view().conditions] == [("XID_48", Level.FREE_RESTART_NPU)]


def test_a_duration_rule_goes_on_top_of_the_pair() -> None:
    lower = related(LINK_DOWN, RETRY, then="level", level=Level.SUB_HEALTH)
    engine = begin(catalog(*ROWS, relation=[lower], duration=[lasting(LINK_DOWN, 20, 60)]))
    run(engine, [(1, signal(RETRY)), (2, signal(LINK_DOWN))])
    assert condition(engine, LINK_DOWN).level is Level.SUB_HEALTH
    wait(engine, 30)
    assert condition(engine, LINK_DOWN).level is Level.PRE_SEPARATE_NPU


# --------------------------------------------------------------------------- cancel


def test_a_code_cancels_what_came_before_it_and_not_what_comes_after() -> None:
    engine = begin(CANCEL)
    events = run(engine, [(1, gpu("XID_163")), (100, gpu("XID_162"))])
    assert told(events)[1:] == [("notice", GPU, "XID_162"), ("cleared", GPU, "XID_163")]
    assert events[-1].why == "cancelled by XID_162"
    assert seen(engine, (101, gpu("XID_163"))) == [("raised", GPU, "XID_163")]


def test_what_is_further_back_than_the_window_is_not_cancelled_unless_the_window_is_zero() -> None:
    def cleared(catalog: Catalog) -> list[tuple[str, str, str]]:
        engine = begin(catalog)
        events = run(engine, [(1, gpu("XID_163")), (9000, gpu("XID_162"))])
        return told(of(events, EventKind.CLEARED))

    assert cleared(CANCEL) == []
    always = catalog(*ROWS, relation=[related("XID_162", "XID_163", within_s=0, then="cancel")])
    assert cleared(always) == [("cleared", GPU, "XID_163")]


# --------------------------------------------------------------------------- reload


def test_new_tables_change_the_level_of_a_pair_and_make_none_of_the_past() -> None:
    softer = related(RETRY, LINK_DOWN, then="level", level=Level.SUB_HEALTH)
    engine = begin(LEVELS, catalog(*ROWS, relation=[softer], digest="second"))
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(RETRY))])
    changed = run(engine, [(3, CatalogChanged(digest="second"))])
    assert told(changed)[1:] == [("level_changed", GPU, RETRY)]
    assert condition(engine, RETRY).level is Level.SUB_HEALTH
    engine = begin(catalog(*ROWS), catalog(*ROWS, relation=[PAIR], digest="second"))
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(RETRY))])
    assert len(run(engine, [(3, CatalogChanged(digest="second"))])) == 1
    assert condition(engine, RETRY).level is Level.NOT_HANDLE


def test_a_pair_whose_rule_is_gone_falls_back_to_the_row() -> None:
    engine = begin(LEVELS, catalog(*ROWS, digest="second"))
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(RETRY)), (3, CatalogChanged(digest="second"))])
    assert condition(engine, RETRY).level is Level.NOT_HANDLE


def test_what_was_absorbed_is_not_raised_by_new_tables() -> None:
    engine = begin(TABLES, catalog(*ROWS, digest="second"))
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE)), (3, CatalogChanged(digest="second"))])
    assert seen(engine, (4, active(UCE, AI_CORE, begun_s=3.5))) == []
