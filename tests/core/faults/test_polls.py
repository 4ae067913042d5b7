"""Active sets heal lost callbacks both ways."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import EventKind, Level
from tests.core.build import (
    HBM,
    LINK_DOWN,
    active,
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
    wait,
)

TABLES = catalog(
    row(HBM, Level.RESTART_NPU), row("LATCHED", clear_on=ClearOn(reset=True)), frequency=[repeat(HBM, 2)]
)


def test_a_set_opens_a_code_whose_occur_was_lost() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(2, active(HBM, begun_s=1))])) == [("raised", "npu0", HBM)]
    assert condition(engine, HBM).presence.present_ns == ns(2)


def test_a_set_closes_a_code_whose_recovery_was_lost() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(1, signal(HBM)), (3, active(begun_s=2))]))[1:] == [("cleared", "npu0", HBM)]


def test_a_set_begun_before_the_last_signal_proves_nothing_about_it() -> None:
    engine = begin(TABLES)
    run(engine, [(2, signal(HBM)), (3, active(begun_s=2))])
    assert open_codes(engine) == [("die0", HBM)]


def test_an_incomplete_set_opens_what_it_shows_and_closes_nothing() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (3, active("RestartRequest", begun_s=2, complete=False))])
    assert [code for _, code in open_codes(engine)] == [HBM, "RestartRequest"]


def test_a_set_leaves_what_only_a_once_opened() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM, "once")), (3, active(begun_s=2))])
    assert open_codes(engine) == [("die0", HBM)]


def test_a_set_that_shows_a_once_makes_it_a_presence_and_counts_no_occurrence() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, signal(HBM, "once")), (3, active(HBM, begun_s=2))])
    assert of(events, EventKind.PROMOTED) == []
    assert wait(engine, 1000) == []
    assert (condition(engine, HBM).presence.present_ns, condition(engine, HBM).presence.count) == (ns(3), 1)


def test_a_code_healed_by_a_set_counts_as_an_occurrence() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, signal(HBM)), (2, signal(HBM, "recover")), (4, active(HBM, begun_s=3))])
    assert emitted(events)[-1] == ("promoted", "npu0", HBM)


def test_an_unchanged_set_is_not_stored() -> None:
    engine = begin(TABLES)
    first, again = active(HBM, begun_s=1), active(HBM, begun_s=2)
    assert engine.step(ns(1), first).records == (first,)
    assert engine.step(ns(2), again).records == ()


def test_a_set_of_one_device_says_nothing_of_another() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, signal(HBM)), (3, active(device="npu1", begun_s=2))])
    assert open_codes(engine) == [("die0", HBM)]


def test_a_set_of_another_source_closes_nothing() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (3, active(source="kmsg", begun_s=2))])
    assert open_codes(engine) == [("die0", HBM)]


def test_whoever_shows_a_fault_that_came_once_elsewhere_can_say_that_it_is_over() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, signal(HBM, "once", source="kmsg")), (3, active(HBM, begun_s=2))])
    events += run(engine, [(5, active(begun_s=4))])
    assert emitted(events) == [("raised", "npu0", HBM), ("cleared", "npu0", HBM)]


def test_a_presence_stays_with_the_source_that_showed_it_first() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (3, active(HBM, source="kmsg", begun_s=2))])
    run(engine, [(5, active(source="kmsg", begun_s=4))])
    assert open_codes(engine) == [("die0", HBM)]


def test_a_set_asked_for_before_a_recovery_opens_nothing_and_counts_nothing() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (10, signal(HBM, "recover")), (11, active(HBM, begun_s=10))])
    assert (open_codes(engine), engine.view().promotions) == ([], ())
    assert emitted(run(engine, [(12, active(HBM, begun_s=11))]))[0] == ("raised", "npu0", HBM)


def test_a_set_for_all_devices_closes_on_each_and_makes_no_device() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, signal(HBM)), (1, signal(HBM, device="npu1")), (3, active(device="*", begun_s=2))])
    assert open_codes(engine) == []
    run(engine, [(4, active(HBM, device="*", begun_s=4))])
    assert [view.name for view in engine.view().devices] == ["node", "npu0", "npu1"]


def test_an_absent_code_that_the_driver_cannot_clear_stays_but_is_present_no_longer() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("LATCHED")), (3, active(begun_s=2))])
    assert condition(engine, "LATCHED").presence.present_ns is None


def test_a_set_begun_before_a_recovery_does_not_undo_it() -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting()]))
    run(
        engine,
        [(1, signal(LINK_DOWN)), (30, signal(LINK_DOWN, "recover")), (31, active(LINK_DOWN, begun_s=29))],
    )
    assert condition(engine, LINK_DOWN).presence.recovered_ns == ns(30)


def test_a_code_that_is_only_a_notice_has_one_however_long_it_is_shown() -> None:
    engine = begin(catalog(row(HBM, notice=True)))
    assert emitted(run(engine, [(1, active(HBM, begun_s=0))])) == [("notice", "npu0", HBM)]
    for at_s in (2, 90, 900):
        outcome = engine.step(ns(at_s), active(HBM, begun_s=at_s - 1))
        assert (outcome.records, outcome.events) == ((), ())
    assert emitted(run(engine, [(901, signal(HBM))])) == [("notice", "npu0", HBM)]


def test_of_what_could_not_be_asked_for_a_complete_set_says_nothing_and_closes_the_rest() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (1, signal("XID_154.1"))])
    events = run(engine, [(3, active(begun_s=2, unread=("XID_154",)))])
    assert emitted(events) == [("cleared", "npu0", HBM)]
    assert open_codes(engine) == [("die0", "XID_154.1")]
    assert emitted(run(engine, [(5, active(begun_s=4))])) == [("cleared", "npu0", "XID_154.1")]
