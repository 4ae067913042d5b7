"""Faults near each other that change a level, or of which one ends the other."""

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import CatalogChanged, EventKind, Level, Verdict
from tests.core.build import (
    active,
    begin,
    catalog,
    condition,
    emitted,
    lasting,
    ns,
    of,
    open_codes,
    related,
    run,
    signal,
    stands,
    wait,
)
from tests.core.rules.relations import (
    AI_CORE,
    CANCEL,
    GPU,
    LEVELS,
    LINK_DOWN,
    PAIR,
    RETRY,
    ROWS,
    TABLES,
    UCE,
    gpu,
    seen,
)

# --------------------------------------------------------------------------- level


def test_a_pair_gives_the_level_in_whichever_order_it_comes() -> None:
    engine = begin(LEVELS)
    events = run(engine, [(1, signal(RETRY)), (200, signal(LINK_DOWN))])
    assert emitted(events) == [
        ("raised", GPU, RETRY),
        ("raised", GPU, LINK_DOWN),
        ("level_changed", GPU, RETRY),
    ]
    assert events[-1].why == "next to a related fault, by level-8C1F860B: NotHandleFault -> SeparateNPU"
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
    assert emitted(events)[1:] == [("notice", GPU, "XID_162"), ("cleared", GPU, "XID_163")]
    assert events[-1].why == "cancelled by XID_162"
    assert seen(engine, (101, gpu("XID_163"))) == [("raised", GPU, "XID_163")]


def test_an_end_that_is_reported_late_cancels_nothing_that_came_after_it() -> None:
    engine = begin(CANCEL)
    late = gpu("XID_162", backdated=True, last_ns=ns(5))
    assert of(run(engine, [(10, gpu("XID_163")), (11, late)]), EventKind.CLEARED) == []
    assert open_codes(engine) == [("die0", "XID_163")]


def test_what_is_further_back_than_the_window_is_not_cancelled_unless_the_window_is_zero() -> None:
    def cleared(catalog: Catalog) -> list[tuple[str, str, str]]:
        engine = begin(catalog)
        events = run(engine, [(1, gpu("XID_163")), (9000, gpu("XID_162"))])
        return emitted(of(events, EventKind.CLEARED))

    assert cleared(CANCEL) == []
    always = catalog(*ROWS, relation=[related("XID_162", "XID_163", within_s=0, then="cancel")])
    assert cleared(always) == [("cleared", GPU, "XID_163")]


# --------------------------------------------------------------------------- reload


def test_new_tables_change_the_level_of_a_pair_and_make_none_of_the_past() -> None:
    softer = related(RETRY, LINK_DOWN, then="level", level=Level.SUB_HEALTH)
    engine = begin(LEVELS, catalog(*ROWS, relation=[softer], digest="second"))
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(RETRY))])
    changed = run(engine, [(3, CatalogChanged(digest="second"))])
    assert emitted(changed)[1:] == [("level_changed", GPU, RETRY)]
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
