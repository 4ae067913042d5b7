"""A refined code, CODE.DETAIL, is judged by the row of its code; its detail may change the level."""

from functools import partial

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import CatalogChanged, EventKind, Level
from tests.core.build import (
    begin,
    catalog,
    condition,
    emitted,
    ns,
    open_codes,
    repeat,
    run,
    signal,
    wait,
    xid,
)
from tests.core.build import (
    row as any_row,
)

row = partial(any_row, vendor="nvidia")
QUIET = ClearOn(quiet_ns=ns(60))
TABLES = catalog(
    row("SX_1", Level.SUB_HEALTH, levels={"FATAL": Level.PRE_SEPARATE_NPU}, clear_on=QUIET),
    row("SX_*", Level.SUB_HEALTH, levels={"FATAL": Level.PRE_SEPARATE_NPU}, clear_on=QUIET),
    row("LINK", Level.SUB_HEALTH, clear_on=QUIET),
    row("LINK.Fatal", Level.RESTART_NPU, name="link lost", clear_on=QUIET),
    row("LINK.Nonfatal", Level.SUB_HEALTH, name="link hiccup", notice=True),
    row("CRASHED", Level.NOT_HANDLE, levels={"*": Level.NOT_HANDLE}, clear_on=QUIET),
    frequency=(repeat("SX_1", 2, 600),),
)


def test_a_detail_that_changes_nothing_is_the_same_fault() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(1, xid("SX_1")), (2, xid("SX_1.Non-fatal"))]))[0] == (
        "raised",
        "0000:3b:00.0",
        "SX_1",
    )
    assert [code for _, code in open_codes(engine)] == ["SX_1"]
    assert condition(engine, "SX_1").presence.count == 2


def test_a_detail_with_a_level_of_its_own_is_a_fault_of_its_own() -> None:
    engine = begin(TABLES)
    run(engine, [(1, xid("SX_1")), (2, xid("SX_1.Fatal"))])
    assert [code for _, code in open_codes(engine)] == ["SX_1", "SX_1.Fatal"]
    assert condition(engine, "SX_1.Fatal").level is Level.PRE_SEPARATE_NPU


def test_a_detail_with_a_level_of_its_own_is_closed_by_no_quiet_time() -> None:
    engine = begin(TABLES)
    run(engine, [(1, xid("SX_1")), (2, xid("SX_1.Fatal"))])
    wait(engine, 120)
    assert [code for _, code in open_codes(engine)] == ["SX_1.Fatal"]


def test_each_detail_is_a_fault_of_its_own_where_the_row_says_so_of_all_and_a_quiet_time_closes_it() -> None:
    engine = begin(TABLES)
    run(engine, [(1, xid("CRASHED.ascend", "node")), (2, xid("CRASHED.nvidia", "node"))])
    assert [code for _, code in open_codes(engine)] == ["CRASHED.ascend", "CRASHED.nvidia"]
    wait(engine, 61, extra_ns=1)
    assert [code for _, code in open_codes(engine)] == ["CRASHED.nvidia"]


def test_a_code_without_a_row_takes_the_level_of_its_detail_from_the_family_and_stays_unknown() -> None:
    engine = begin(TABLES)
    (raised,) = run(engine, [(1, xid("SX_9.Fatal"))])
    assert (raised.code, raised.condition_level, raised.unknown) == (
        "SX_9.Fatal",
        Level.PRE_SEPARATE_NPU,
        True,
    )


def test_a_code_refined_twice_is_judged_by_the_closest_row() -> None:
    engine = begin(TABLES)
    (raised,) = run(engine, [(1, xid("LINK.Fatal.RX.0x4"))])
    assert (raised.code, raised.name, raised.unknown) == ("LINK.Fatal", "link lost", False)


def test_refined_occurrences_count_for_a_rule_that_names_the_code() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, xid("SX_1.Non-fatal")), (200, xid("SX_1"))])
    assert EventKind.PROMOTED in [event.kind for event in events]


def test_what_is_only_a_notice_is_emitted_and_opens_nothing() -> None:
    engine = begin(TABLES)
    (notice,) = run(engine, [(1, xid("LINK.Nonfatal.RX.0x1"))])
    assert (notice.kind, notice.code, notice.name) == (EventKind.NOTICE, "LINK.Nonfatal", "link hiccup")
    assert (notice.device, notice.condition_level) == ("node", Level.SUB_HEALTH)
    assert notice.why.endswith("; it names 0000:3b:00.0")
    assert open_codes(engine) == []


# --------------------------------------------------------------------------- when the tables change


PLAIN = catalog(row("SX_1", Level.SUB_HEALTH, clear_on=ClearOn(recover=True)), digest="second")


def test_a_detail_that_loses_its_level_goes_on_as_the_code() -> None:
    engine = begin(TABLES, PLAIN)
    run(engine, [(1, xid("SX_1.Fatal")), (2, CatalogChanged(digest="second"))])
    assert open_codes(engine) == [("slot:0000:3b:00.0", "SX_1")]
    events = run(engine, [(3, xid("SX_1")), (4, signal("SX_1", "recover", "0000:3b:00.0"))])
    assert emitted(events) == [("cleared", "0000:3b:00.0", "SX_1")]


def test_of_two_that_become_one_the_first_stays() -> None:
    engine = begin(TABLES, PLAIN)
    run(engine, [(1, xid("SX_1")), (2, xid("SX_1.Fatal"))])
    events = run(engine, [(3, CatalogChanged(digest="second"))])
    assert ("cleared", "0000:3b:00.0", "SX_1.Fatal") in emitted(events)
    assert [one.id for one in engine.view().conditions] == ["slot:0000:3b:00.0/SX_1#1"]


def test_a_promotion_of_a_detail_that_becomes_the_code_ends_without_harm() -> None:
    rules = [repeat("SX_1.Fatal", 1)]
    engine = begin(catalog(*TABLES.rows.values(), frequency=rules), PLAIN)
    run(engine, [(1, xid("SX_1.Fatal"))])
    events = run(engine, [(2, CatalogChanged(digest="second"))])
    assert ("released", "0000:3b:00.0", "SX_1.Fatal") in emitted(events)
    assert engine.view().promotions == ()
