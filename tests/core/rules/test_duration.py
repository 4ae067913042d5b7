"""The duration rule, to the nanosecond."""

from nodeagent.core.model import EventKind, Level, Verdict
from tests.core.build import (
    LINK_DOWN,
    begin,
    catalog,
    condition,
    emitted,
    lasting,
    ns,
    open_codes,
    repeat,
    row,
    run,
    signal,
    stands,
    wait,
)

TABLES = catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 20, 60)])


def test_exactly_the_time_out_is_not_yet_too_long() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN))])
    assert wait(engine, 21) == []
    assert condition(engine, LINK_DOWN).level is Level.NOT_HANDLE


def test_a_nanosecond_past_the_time_out_takes_the_level_of_the_rule() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN))])
    (changed,) = wait(engine, 21, extra_ns=1)
    assert (changed.kind, changed.condition_level) == (EventKind.LEVEL_CHANGED, Level.PRE_SEPARATE_NPU)
    assert changed.verdict is Verdict.NO_NEW_JOBS


def test_a_deadline_noticed_late_is_emitted_with_the_time_it_fell() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN))])
    assert [event.at_ns for event in wait(engine, 500)] == [ns(21) + 1]


def test_a_recovery_before_the_time_out_clears_at_once() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, signal(LINK_DOWN)), (21, signal(LINK_DOWN, "recover"))])
    assert emitted(events)[-1] == ("cleared", "npu0", LINK_DOWN)
    assert wait(engine, 500) == []


def test_a_repeated_occur_does_not_begin_the_time_anew() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN)), (15, signal(LINK_DOWN))])
    assert emitted(wait(engine, 21, extra_ns=1)) == [("level_changed", "npu0", LINK_DOWN)]


def test_after_the_time_out_it_clears_only_when_gone_for_longer_than_the_recovery_time() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN)), (30, signal(LINK_DOWN, "recover"))])
    assert wait(engine, 90) == []
    assert stands(engine)[1] is Verdict.NO_NEW_JOBS
    assert emitted(wait(engine, 90, extra_ns=1)) == [("cleared", "npu0", LINK_DOWN)]


def test_coming_again_within_the_recovery_time_goes_on_at_the_level_of_the_rule() -> None:
    engine = begin(TABLES)
    events = run(
        engine, [(1, signal(LINK_DOWN)), (30, signal(LINK_DOWN, "recover")), (89, signal(LINK_DOWN))]
    )
    assert emitted(events) == [("raised", "npu0", LINK_DOWN), ("level_changed", "npu0", LINK_DOWN)]
    assert wait(engine, 500) == []
    assert condition(engine, LINK_DOWN).level is Level.PRE_SEPARATE_NPU


def test_a_recovery_time_of_nothing_still_means_longer_than_nothing() -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 0, 0)]))
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(LINK_DOWN, "recover"))])
    assert open_codes(engine) == [("die0", LINK_DOWN)]
    assert emitted(wait(engine, 2, extra_ns=1)) == [("cleared", "npu0", LINK_DOWN)]


def test_a_once_is_no_presence() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN, "once"))])
    assert emitted(wait(engine, 500)) == [("cleared", "npu0", LINK_DOWN)]


def test_a_once_then_an_occur_is_a_presence_from_the_occur_on() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN, "once")), (10, signal(LINK_DOWN))])
    assert wait(engine, 30) == []
    assert emitted(wait(engine, 30, extra_ns=1)) == [("level_changed", "npu0", LINK_DOWN)]


def test_a_row_stricter_than_the_rule_keeps_its_level() -> None:
    engine = begin(catalog(row(LINK_DOWN, Level.SEPARATE_NPU), duration=[lasting()]))
    run(engine, [(1, signal(LINK_DOWN))])
    assert wait(engine, 100) == []
    assert condition(engine, LINK_DOWN).level is Level.SEPARATE_NPU


def test_with_a_frequency_rule_each_passage_counts_once() -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting()], frequency=[repeat(LINK_DOWN, 2)]))
    run(engine, [(1, signal(LINK_DOWN)), (2, signal(LINK_DOWN)), (3, signal(LINK_DOWN))])
    assert emitted(wait(engine, 100)) == [("level_changed", "npu0", LINK_DOWN)]
    events = run(engine, [(110, signal(LINK_DOWN, "recover")), (200, signal(LINK_DOWN))])
    assert emitted(events) == [("cleared", "npu0", LINK_DOWN), ("raised", "npu0", LINK_DOWN)]
    assert emitted(wait(engine, 300))[-1] == ("promoted", "npu0", LINK_DOWN)


def test_with_a_duration_rule_a_once_counts_nothing() -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting()], frequency=[repeat(LINK_DOWN, 1)]))
    run(engine, [(1, signal(LINK_DOWN, "once"))])
    assert engine.view().promotions == ()
