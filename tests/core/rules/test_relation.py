"""Faults near each other: a companion goes with its root."""

import pytest

from nodeagent.core.model import Absorbed, EventKind, Input, Level, Window
from tests.core.build import (
    active,
    begin,
    catalog,
    condition,
    emitted,
    held,
    ns,
    open_codes,
    order,
    related,
    repeat,
    row,
    run,
    signal,
)
from tests.core.rules.relations import AI_CORE, COMPANIONS, GPU, ROWS, TABLES, UCE, gpu, seen

# --------------------------------------------------------------------------- absorb


def test_a_companion_of_an_open_root_opens_nothing_and_is_counted_there() -> None:
    engine = begin(TABLES)
    assert seen(engine, (1, gpu("XID_79")), (2, gpu("XID_45")), (3, gpu("XID_154")), (4, gpu("XID_154"))) == [
        ("raised", GPU, "XID_79")
    ]
    root = condition(engine, "XID_79")
    assert (root.presence.count, root.backing.evidence) == (4, {"companions": "XID_45, XID_154"})
    assert root.presence.last_ns == ns(1)


def test_one_exactly_the_window_away_is_near_and_one_beyond_it_is_a_fault_of_its_own() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_79")))
    assert seen(engine, (181, gpu("XID_45"))) == []
    assert emitted(engine.step(ns(181) + 1, gpu("XID_45")).events) == [("raised", GPU, "XID_45")]


def test_a_companion_that_came_first_closes_as_absorbed_when_the_root_comes() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, gpu("XID_45")), (2, gpu("XID_45")), (3, gpu("XID_79"))])
    assert emitted(events) == [
        ("raised", GPU, "XID_45"),
        ("raised", GPU, "XID_79"),
        ("cleared", GPU, "XID_45"),
    ]
    assert events[-1].why == "absorbed: it goes with XID_79 on npu0"
    root = condition(engine, "XID_79")
    assert (root.presence.count, root.backing.evidence["companions"]) == (3, "XID_45")


@pytest.mark.parametrize("codes", [("XID_45", "XID_154"), ("XID_154", "XID_45")])
def test_of_two_companions_without_a_root_the_stricter_stays(codes: tuple[str, str]) -> None:
    engine = begin(TABLES)
    run(engine, [(1, gpu(codes[0])), (2, gpu(codes[1]))])
    assert open_codes(engine) == [("die0", "XID_45")]


def test_a_root_that_is_no_worse_takes_a_companion_that_came_first() -> None:
    rows = (row("XID_45", Level.RESTART_NPU), row("XID_48", Level.RESTART_NPU))
    engine = begin(catalog(*rows, relation=[related("XID_45", "XID_48")]))
    seen(engine, (1, gpu("XID_45")), (2, gpu("XID_48")))
    assert open_codes(engine) == [("die0", "XID_48")]


def test_the_worse_of_two_is_never_hidden_behind_the_other() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_92")), (2, gpu("XID_45")))
    assert open_codes(engine) == [("die0", "XID_92"), ("die0", "XID_45")]


def test_windows_do_not_chain_over_companions() -> None:
    engine = begin(TABLES)
    seen(engine, (0, gpu("XID_79")), (170, gpu("XID_45")))
    assert seen(engine, (300, gpu("XID_154"))) == [("raised", GPU, "XID_154")]


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
    assert [(one.code, one.presence.count) for one in engine.view().conditions] == [
        ("XID_79", 2),
        ("XID_48", 1),
    ]


def test_a_companion_of_a_root_that_has_closed_gets_a_notice() -> None:
    engine = begin(TABLES)
    seen(engine, (1, gpu("XID_79")), (2, order("release")))
    (notice,) = run(engine, [(3, gpu("XID_45"))])
    assert (notice.kind, notice.code) == (EventKind.NOTICE, "XID_45")
    assert notice.why == "goes with XID_79 on npu0, which is over"
    assert open_codes(engine) == []


def test_absorbed_occurrences_are_not_counted_in_whichever_order_they_came() -> None:
    tables = catalog(*ROWS, relation=COMPANIONS, frequency=[repeat("XID_45", 2, burst_ns=0)])
    engine = begin(tables)
    codes = ("XID_45", "XID_79", "XID_45")
    run(engine, [(at_s, gpu(code, source="ascend")) for at_s, code in enumerate(codes, 1)])
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
    assert seen(engine, (101, signal(UCE, "recover"))) == [("raised", GPU, AI_CORE), ("cleared", GPU, UCE)]
    assert seen(engine, (102, active(AI_CORE, begun_s=101))) == []


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
