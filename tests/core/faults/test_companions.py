"""A companion whose root ends: it is there, or it is not, and at no time is it hidden behind nothing."""

from collections.abc import Sequence

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    CatalogChanged,
    DeviceGone,
    Event,
    EventKind,
    Input,
    Level,
    Tick,
    Verdict,
)
from nodeagent.core.state import limits
from tests.core import build
from tests.core.build import (
    active,
    begin,
    catalog,
    condition,
    edge,
    emitted,
    hot,
    ns,
    open_codes,
    order,
    related,
    repeat,
    row,
    run,
    signal,
)
from tests.core.rules.relations import AI_CORE, COMPANIONS, FOR_EVER, GPU, ROWS, TABLES, UCE, gpu, seen


def verdicts(events: Sequence[Event]) -> list[tuple[str, str, Verdict]]:
    return [(event.kind.value, event.code, event.verdict) for event in events]


def test_while_a_companion_is_there_the_end_of_its_root_never_shows_a_device_without_fault() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE))])
    ended = run(engine, [(3, signal(UCE, "recover"))])
    assert verdicts(ended) == [
        ("raised", AI_CORE, Verdict.ISOLATE),
        ("cleared", UCE, Verdict.NO_NEW_JOBS),
    ]
    assert ended[0].why == f"still there, after {UCE}, which it went with, is over"
    companion = condition(engine, AI_CORE)
    assert (companion.presence.opened_ns, companion.presence.present_ns, companion.occurred_ns) == (
        ns(3),
        ns(3),
        ns(2),
    )


FULL = catalog(*ROWS, row("too_many_faults", Level.SUB_HEALTH), relation=COMPANIONS)


def filled(engine: Engine, others: int) -> None:
    """So many mild faults on the device, after the root and its companion."""
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE))])
    run(engine, [(2, signal(f"N{number}", severity=0)) for number in range(others)])


def test_a_companion_takes_the_place_of_its_root_on_a_device_that_is_full() -> None:
    engine = begin(FULL)
    filled(engine, limits.MAX_CONDITIONS_ON_DEVICE - 1)
    assert emitted(run(engine, [(3, signal(UCE, "recover"))])) == [
        ("raised", "npu0", AI_CORE),
        ("cleared", "npu0", UCE),
    ]


TWO = catalog(
    *(each for each in ROWS if each.code != UCE),
    row(UCE, Level.RESTART_BUSINESS, clear_on=ClearOn(recover=True, operator=True)),
    row("N*", clear_on=ClearOn(recover=True, operator=True)),
    row("80C98010", Level.RESTART_REQUEST),
    row("too_many_faults", Level.SUB_HEALTH),
    relation=[*COMPANIONS, related("80C98010", UCE, within_s=5)],
)


def full_with_two_companions() -> Engine:
    engine = begin(TWO)
    filled(engine, 0)
    others = [f"N{number}" for number in range(limits.MAX_CONDITIONS_ON_DEVICE - 1)]
    run(engine, [(2, signal(code)) for code in ("80C98010", *others)])
    return engine


def test_of_more_companions_than_there_is_room_for_the_milder_faults_make_way() -> None:
    engine = full_with_two_companions()
    assert emitted(run(engine, [(3, signal(UCE, "recover"))])) == [
        ("raised", "npu0", AI_CORE),
        ("cleared", "npu0", "N0"),
        ("raised", "npu0", "80C98010"),
        ("cleared", "npu0", UCE),
        ("raised", "node", "too_many_faults"),
    ]


@pytest.mark.parametrize(
    "ending", [order("release"), active(AI_CORE, "80C98010", begun_s=2.5)], ids=["release", "poll"]
)
def test_what_made_way_is_closed_once_where_all_of_them_end(ending: Input) -> None:
    engine = full_with_two_companions()
    events = run(engine, [(3, ending)])
    cleared = [event.code for event in events if event.kind is EventKind.CLEARED]
    assert len(cleared) == len(set(cleared)) == limits.MAX_CONDITIONS_ON_DEVICE


@pytest.mark.parametrize(
    "said",
    [signal(AI_CORE), active(AI_CORE, begun_s=3.5), signal(AI_CORE, "once")],
    ids=["occur", "poll", "once"],
)
def test_what_is_said_of_it_near_a_root_that_is_over_hides_it_no_more(said: Input) -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE)), (3, signal(UCE, "recover"))])
    assert seen(engine, (4, said)) == []
    assert open_codes(engine) == [("die0", AI_CORE)]


def test_a_companion_that_comes_to_stay_just_after_its_root_is_over_is_a_fault() -> None:
    """There is nothing left to count it in, and nothing else would keep the device from new jobs."""
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(UCE, "recover"))])
    assert seen(engine, (3, signal(AI_CORE))) == [("raised", GPU, AI_CORE)]


def test_a_poll_that_shows_neither_ends_both_and_raises_nothing() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE))])
    assert seen(engine, (10, active(begun_s=9))) == [("cleared", GPU, UCE)]


def test_a_poll_that_shows_only_the_companion_ends_the_one_and_raises_the_other() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE))])
    assert seen(engine, (10, active(AI_CORE, begun_s=9))) == [("raised", GPU, AI_CORE), ("cleared", GPU, UCE)]


@pytest.mark.parametrize("ended", [order("release"), Tick()], ids=["by a person", "by quiet"])
def test_however_its_root_ends_the_companion_is_there(ended: Input) -> None:
    rows = (
        row("XID_79", Level.SEPARATE_NPU, clear_on=ClearOn(operator=True, quiet_ns=ns(600))),
        row(AI_CORE, Level.RESTART_REQUEST),
    )
    engine = begin(catalog(*rows, relation=[related(AI_CORE, "XID_79", within_s=5)]))
    run(engine, [(1, gpu("XID_79")), (2, signal(AI_CORE)), (650 if isinstance(ended, Tick) else 10, ended)])
    assert open_codes(engine) == [("die0", AI_CORE)]


def test_another_open_root_near_it_keeps_it() -> None:
    rows = (
        row("XID_79", Level.SEPARATE_NPU, clear_on=FOR_EVER),
        row(UCE, Level.RESTART_BUSINESS),
        row(AI_CORE, Level.RESTART_REQUEST),
    )
    engine = begin(catalog(*rows, relation=[related(AI_CORE, "XID_79", UCE, within_s=5)]))
    run(engine, [(1, signal(UCE)), (2, gpu("XID_79")), (3, signal(AI_CORE))])
    run(engine, [(100, order("release"))])
    assert open_codes(engine) == [("die0", UCE)]
    assert condition(engine, UCE).backing.evidence["companions"] == AI_CORE
    assert seen(engine, (101, signal(UCE, "recover"))) == [("raised", GPU, AI_CORE), ("cleared", GPU, UCE)]


def test_that_it_goes_on_is_no_occurrence_and_counts_for_no_rule() -> None:
    engine = begin(catalog(*ROWS, relation=COMPANIONS, frequency=[repeat(AI_CORE, 2, burst_ns=0)]))
    for begun in (0, 1000, 2000):
        run(engine, [(begun + 1, signal(UCE)), (begun + 2, signal(AI_CORE))])
        run(engine, [(begun + 3, signal(UCE, "recover")), (begun + 4, signal(AI_CORE, "recover"))])
    assert engine.view().promotions == ()


def test_another_part_in_the_slot_has_nothing_of_it() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, signal(AI_CORE))])
    events = run(engine, [(3, build.seen(GPU, "another", "0000:00:00.0"))])
    assert [event for event in emitted(events) if event[0] == "raised"] == []
    assert open_codes(engine) == []


def test_a_root_that_turns_out_to_be_a_companion_leaves_its_own_behind() -> None:
    rows = [row(code, Level.RESTART_BUSINESS) for code in ("C1", "C2", "C3")]
    engine = begin(
        catalog(*rows, relation=[related("C1", "C2", within_s=5), related("C2", "C3", within_s=5)])
    )
    run(engine, [(1, signal("C2")), (2, signal("C1")), (100, signal("C3"))])
    assert seen(engine, (101, signal("C2"))) == [("raised", GPU, "C1"), ("cleared", GPU, "C2")]
    assert open_codes(engine) == [("die0", "C3"), ("die0", "C1")]


def test_a_reload_that_ends_the_root_raises_nothing_and_the_next_poll_does() -> None:
    rows = (row("HOT", Level.RESTART_BUSINESS), row(AI_CORE, Level.RESTART_REQUEST))
    pair = related(AI_CORE, "HOT", within_s=5)
    with_rule = catalog(*rows, relation=[pair], threshold=[hot("HOT", 0)])
    engine = begin(with_rule, catalog(*rows, relation=[pair], digest="second"))
    run(engine, [(1, edge(True)), (2, Tick()), (3, signal(AI_CORE))])
    reloaded = run(engine, [(10, CatalogChanged(digest="second"))])
    assert [event for event in emitted(reloaded) if event[0] == "raised"] == []
    assert seen(engine, (11, active(AI_CORE, begun_s=10))) == [("raised", GPU, AI_CORE)]


def test_a_companion_goes_with_the_same_fault_of_the_device_that_this_one_turns_out_to_be() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(UCE)), (2, DeviceGone(source="ascend", device=GPU, reason="lost"))])
    run(engine, [(3, build.seen("npu7", "", "0000:07:00.0")), (4, signal(UCE, device="npu7"))])
    run(engine, [(5, signal(AI_CORE, device="npu7")), (6, build.seen("npu7", "die0", "0000:07:00.0"))])
    assert open_codes(engine) == [("die0", UCE)]
    ended = seen(engine, (7, signal(UCE, "recover", device="npu7")))
    assert ended == [("raised", "npu7", AI_CORE), ("cleared", "npu7", UCE)]
