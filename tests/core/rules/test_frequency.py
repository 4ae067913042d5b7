"""The frequency rule: when it promotes, what keeps a promotion alive, what releases it."""

import pytest

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import EventKind, Handling, Input, Level, Verdict, Window
from nodeagent.core.rules.windows import burst_ns, count
from tests.core.build import (
    DAY_S,
    HBM,
    HOUR_S,
    LINK_DOWN,
    back,
    begin,
    catalog,
    emitted,
    lasting,
    ns,
    of,
    order,
    repeat,
    row,
    run,
    seen,
    signal,
    stands,
    wait,
    xid,
)

RELEASED_AFTER_AN_HOUR = catalog(
    row(HBM), frequency=[repeat(HBM, 2, level=Level.SEPARATE_NPU, release_ns=ns(HOUR_S))]
)


def flapping(*times_s: float, code: str = HBM) -> list[tuple[float, Input]]:
    """The code occurs at each time and recovers a tenth of a second later."""
    return [
        step for at_s in times_s for step in ((at_s, signal(code)), (at_s + 0.1, signal(code, "recover")))
    ]


def test_the_nth_occurrence_in_the_window_promotes_and_outlives_the_fault() -> None:
    engine = begin(catalog(row(HBM, Level.RESTART_NPU), frequency=[repeat(HBM, 3)]))
    events = run(engine, [(1, signal(HBM)), (2, signal(HBM)), (3, signal(HBM)), (4, signal(HBM, "recover"))])
    assert emitted(events) == [
        ("raised", "npu0", HBM),
        ("promoted", "npu0", HBM),
        ("cleared", "npu0", HBM),
    ]
    assert stands(engine)[:2] == (Level.MANUALLY_SEPARATE_NPU, Verdict.ISOLATE)
    assert events[1].condition_id == f"die0/repeat-{HBM}#1"
    assert events[1].rule == f"repeat-{HBM}"


@pytest.mark.parametrize(("last_s", "fires"), [(1 + DAY_S, True), (1 + DAY_S + 0.001, False)])
def test_an_occurrence_exactly_a_window_old_still_counts(last_s: float, fires: bool) -> None:
    engine = begin(catalog(row(HBM), frequency=[repeat(HBM, 3)]))
    events = run(engine, flapping(1, 100, last_s))
    assert bool(of(events, EventKind.PROMOTED)) is fires


def test_once_signals_count_as_occurrences() -> None:
    engine = begin(catalog(row(HBM), frequency=[repeat(HBM, 2)]))
    assert emitted(run(engine, [(1, signal(HBM, "once")), (2, signal(HBM, "once"))]))[-1] == (
        "promoted",
        "npu0",
        HBM,
    )


def test_a_coalesced_signal_counts_as_often_as_it_says() -> None:
    engine = begin(catalog(row(HBM), frequency=[repeat(HBM, 3)]))
    assert emitted(run(engine, [(1, signal(HBM, "once", count=3))]))[-1] == ("promoted", "npu0", HBM)


def test_kernel_lines_of_one_burst_are_one_occurrence() -> None:
    engine = begin(catalog(row("XID_79"), frequency=[repeat("XID_79", 2)]))
    burst = [(1 + 179 * index, xid("XID_79", count=50)) for index in range(4)]
    assert of(run(engine, burst), EventKind.PROMOTED) == []
    assert emitted(run(engine, [(1 + 179 * 3 + 181, xid("XID_79"))]))[-1][0] == "promoted"


def test_one_xid_that_the_kernel_log_and_the_library_report_is_one_occurrence() -> None:
    engine = begin(catalog(row("XID_79"), frequency=[repeat("XID_79", 2)]))
    run(engine, [(0, seen("gpu0", "GPU-1", source="nvidia")), (0, back("nvidia"))])
    both = [xid("XID_79", "gpu0"), xid("XID_79", "gpu0", source="nvidia")]
    assert of(run(engine, [(at_s, one) for at_s, one in enumerate(both, 1)]), EventKind.PROMOTED) == []
    events = run(engine, [(HOUR_S + at_s, one) for at_s, one in enumerate(reversed(both))])
    assert [event.at_ns for event in of(events, EventKind.PROMOTED)] == [ns(HOUR_S)]


@pytest.mark.parametrize(
    ("configured_ns", "source", "burst"),
    [(None, "kmsg", ns(180)), (None, "ascend", 0), (ns(5), "ascend", ns(5)), (0, "kmsg", 0)],
)
def test_a_burst_is_what_the_rule_says_or_else_what_the_source_is_like(
    configured_ns: int | None, source: str, burst: int
) -> None:
    assert burst_ns(Lookup(catalog()), repeat(HBM, burst_ns=configured_ns), source) == burst


def test_firing_clears_the_queue() -> None:
    engine = begin(RELEASED_AFTER_AN_HOUR)
    run(engine, [*flapping(1, 2), (3, order("release"))])
    assert of(run(engine, flapping(10)), EventKind.PROMOTED) == []
    assert emitted(run(engine, flapping(20)))[-1] == ("cleared", "npu0", HBM)
    assert len(engine.view().promotions) == 1


def test_a_promotion_is_released_when_quiet_for_longer_than_its_release_time() -> None:
    engine = begin(RELEASED_AFTER_AN_HOUR)
    run(engine, flapping(1, 2))
    assert wait(engine, 2.1 + HOUR_S) == []
    (released,) = wait(engine, 2.1 + HOUR_S, extra_ns=1)
    assert (released.kind, released.verdict) == (EventKind.RELEASED, Verdict.ALLOW)


def test_while_it_stands_occurrences_only_keep_it_alive() -> None:
    engine = begin(RELEASED_AFTER_AN_HOUR)
    run(engine, flapping(1, 2))
    events = run(engine, flapping(*range(1000, 3000, 500)))
    assert of(events, EventKind.PROMOTED) == []
    assert wait(engine, 2500.1 + HOUR_S) == []
    assert emitted(wait(engine, 2500.1 + HOUR_S, extra_ns=1)) == [("released", "npu0", HBM)]


def test_it_is_not_released_while_the_fault_is_present() -> None:
    engine = begin(RELEASED_AFTER_AN_HOUR)
    run(engine, [*flapping(1), (2, signal(HBM))])
    assert wait(engine, 10 * HOUR_S) == []


def test_a_presence_too_short_to_count_does_not_end_the_quiet() -> None:
    rule = repeat(LINK_DOWN, 1, level=Level.SEPARATE_NPU, release_ns=ns(100))
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 5, 0)], frequency=[rule]))
    run(engine, [(1, signal(LINK_DOWN)), (10, signal(LINK_DOWN, "recover"))])
    run(engine, [(50, signal(LINK_DOWN)), (54, signal(LINK_DOWN, "recover"))])
    assert emitted(wait(engine, 110)) == []
    assert emitted(wait(engine, 110, extra_ns=1)) == [("released", "npu0", LINK_DOWN)]


def test_a_once_is_its_own_recovery() -> None:
    engine = begin(RELEASED_AFTER_AN_HOUR)
    run(engine, [(1, signal(HBM, "once")), (2, signal(HBM, "once"))])
    assert emitted(wait(engine, 100)) == [("cleared", "npu0", HBM)]
    assert wait(engine, 2 + HOUR_S) == []
    assert emitted(wait(engine, 2 + HOUR_S, extra_ns=1)) == [("released", "npu0", HBM)]


def test_without_a_release_time_only_a_person_releases() -> None:
    engine = begin(catalog(row(HBM), frequency=[repeat(HBM, 2)]))
    run(engine, flapping(1, 2))
    assert wait(engine, 1000 * DAY_S) == []
    assert emitted(run(engine, [(1000 * DAY_S, order("release"))])) == [("released", "npu0", HBM)]


def test_a_promotion_never_lowers_a_level() -> None:
    rule = repeat(HBM, 1, level=Level.SUB_HEALTH, release_ns=ns(HOUR_S))
    engine = begin(catalog(row(HBM, Level.SEPARATE_NPU), frequency=[rule]))
    run(engine, [(1, signal(HBM))])
    assert stands(engine)[:2] == (Level.SEPARATE_NPU, Verdict.ISOLATE)


def test_a_promotion_to_a_level_that_changes_with_time_changes_with_it() -> None:
    rule = repeat(HBM, 1, level=Level.RESTART_REQUEST, release_ns=ns(HOUR_S))
    engine = begin(catalog(row(HBM), frequency=[rule]))
    run(engine, [(1, signal(HBM, "once"))])
    assert stands(engine) == (Level.RESTART_REQUEST, Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST)
    wait(engine, 61)
    assert stands(engine)[1:] == (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST)
    assert ("verdict_changed", "npu0", "") in emitted(wait(engine, 61, extra_ns=1))
    assert stands(engine)[1:] == (Verdict.ISOLATE, Handling.RESCHEDULE)
    assert emitted(wait(engine, 1 + HOUR_S, extra_ns=1))[-1] == ("released", "npu0", HBM)


# --------------------------------------------------------------------------- the rule on every code


REPETITION = repeat("*", 3, at_least=Level.RESTART_REQUEST)


def test_the_same_code_at_a_restart_level_three_times_a_day_separates() -> None:
    engine = begin(catalog(frequency=[REPETITION]))
    events = run(engine, flapping(1, 2, 3, code="RestartRequest"))
    assert [event.code for event in of(events, EventKind.PROMOTED)] == ["RestartRequest"]


def test_milder_codes_are_not_repetition() -> None:
    engine = begin(catalog(frequency=[REPETITION]))
    events = run(engine, flapping(1, 2, 3, 4, code="SubHealthFault"))
    assert of(events, EventKind.PROMOTED) == []


def test_different_codes_do_not_add_up() -> None:
    engine = begin(catalog(frequency=[REPETITION]))
    codes = ("RestartRequest", "RestartBusiness", "RestartNPU")
    events = run(engine, [(at_s, signal(code)) for at_s, code in enumerate(codes, 1)])
    assert of(events, EventKind.PROMOTED) == []


def test_a_rule_that_names_the_code_takes_the_place_of_the_rule_on_every_code() -> None:
    engine = begin(catalog(frequency=[REPETITION, repeat("RestartRequest", 5)]))
    events = run(engine, flapping(1, 2, 3, 4, code="RestartRequest"))
    assert of(events, EventKind.PROMOTED) == []


def test_of_two_rules_that_name_a_code_the_first_counts() -> None:
    engine = begin(catalog(row(HBM), frequency=[repeat(HBM, 3, id="first"), repeat(HBM, 2, id="second")]))
    assert of(run(engine, flapping(1, 2)), EventKind.PROMOTED) == []


# --------------------------------------------------------------------------- the window itself


def test_occurrences_reported_late_are_counted_where_they_belong() -> None:
    rule: FrequencyRule = repeat(HBM, 3, 10)
    window = Window(device_id="die0", code=HBM, rule=rule.id)
    for at_s in (20, 12):
        window, fired = count(window, rule, ns(at_s))
        assert not fired
    window, fired = count(window, rule, ns(11))
    assert fired
    assert window.occurrences_ns == (ns(11), ns(12), ns(20))


def test_repetition_isolates_no_more_chips_than_it_may() -> None:
    """Software makes the same fault on chip after chip: those beyond the limit only take no new jobs."""
    limited = catalog(row(HBM), frequency=[repeat(HBM, 1)], max_isolated_chips=2)
    engine = begin(limited, chips=4)
    events = run(engine, [(index, signal(HBM, device=f"npu{index}")) for index in range(4)])
    promoted = of(events, EventKind.PROMOTED)
    assert [(event.device, event.verdict) for event in promoted] == [
        ("npu0", Verdict.ISOLATE),
        ("npu1", Verdict.ISOLATE),
        ("npu2", Verdict.NO_NEW_JOBS),
        ("npu3", Verdict.NO_NEW_JOBS),
    ]
    assert promoted[2].why.endswith("; not ManuallySeparateNPU: repetition isolates 2 chips here at most")
