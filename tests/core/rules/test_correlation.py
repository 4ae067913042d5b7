"""What comes on several chips of a job at once is the job's: suppressed, not promoted."""

import pytest

from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    DeviceGone,
    EventKind,
    Input,
    Level,
    ProcessesListed,
    Started,
    Tick,
    Verdict,
    Window,
)
from tests.core.build import (
    HBM,
    begin,
    catalog,
    device_view,
    emitted,
    held,
    ns,
    of,
    repeat,
    row,
    run,
    seen,
    signal,
    wait,
)

TABLES = catalog(row(HBM), frequency=[repeat(HBM, 3, correlation_ns=ns(30))])
FIRED_S = 1000.0


def once(at_s: float, device: str = "npu0") -> tuple[float, Input]:
    return at_s, signal(HBM, "once", device)


def fired(engine: Engine, last_s: float = FIRED_S, device: str = "npu0") -> list[tuple[str, str, str]]:
    """Three occurrences, the last at ``last_s``, far from each other."""
    return emitted(
        event
        for event in run(
            engine, [once(last_s - 800, device), once(last_s - 400, device), once(last_s, device)]
        )
        if event.kind not in (EventKind.RAISED, EventKind.CLEARED)
    )


def queue(engine: Engine, device_id: str) -> list[float]:
    """Seconds of the occurrences that are still counted."""
    return [
        at_ns / ns(1)
        for carried in engine.carry()
        if isinstance(carried.cell, Window) and carried.cell.device_id == device_id
        for at_ns in carried.cell.occurrences_ns
    ]


def test_a_promotion_takes_effect_30_s_after_it_has_fired_and_no_new_work_comes_meanwhile() -> None:
    engine = begin(TABLES, chips=2)
    assert fired(engine) == [("verdict_changed", "npu0", "")]
    assert device_view(engine).verdict is Verdict.NO_NEW_JOBS
    assert wait(engine, FIRED_S + 30) == []
    (promoted,) = of(wait(engine, FIRED_S + 30, extra_ns=1), EventKind.PROMOTED)
    assert promoted.device == "npu0"


def test_a_chip_alone_on_its_node_is_promoted_at_once() -> None:
    assert fired(begin(TABLES)) == [("promoted", "npu0", HBM)]


def test_a_correlation_of_nothing_switches_it_off() -> None:
    engine = begin(catalog(row(HBM), frequency=[repeat(HBM, 3, correlation_ns=0)]), chips=2)
    assert fired(engine) == [("promoted", "npu0", HBM)]


@pytest.mark.parametrize("apart_s", [0.5, 29, 30])
def test_the_same_code_on_another_chip_after_it_suppresses(apart_s: float) -> None:
    engine = begin(TABLES, chips=2)
    fired(engine)
    events = run(engine, [once(FIRED_S + apart_s, "npu1")])
    assert ("suppressed", "npu0", HBM) in emitted(events)
    assert of(wait(engine, 5000), EventKind.PROMOTED) == []


@pytest.mark.parametrize("apart_s", [0.5, 29, 30])
def test_the_same_code_on_another_chip_before_it_suppresses(apart_s: float) -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [once(FIRED_S - 800), once(FIRED_S - 400), once(FIRED_S - apart_s, "npu1")])
    assert emitted(run(engine, [once(FIRED_S)]))[-1] == ("suppressed", "npu0", HBM)


def test_a_nanosecond_past_30_s_suppresses_no_more() -> None:
    engine = begin(TABLES, chips=2)
    fired(engine)
    events = engine.step(ns(FIRED_S + 30) + 1, signal(HBM, "once", "npu1")).events
    assert [event.device for event in of(events, EventKind.PROMOTED)] == ["npu0"]


def test_another_code_suppresses_nothing() -> None:
    engine = begin(TABLES, chips=2)
    fired(engine)
    run(engine, [(FIRED_S + 1, signal("RestartNPU", "once", "npu1"))])
    assert len(of(wait(engine, FIRED_S + 31), EventKind.PROMOTED)) == 1


def test_a_chip_of_another_job_suppresses_nothing() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, held("npu0", "job-a")), (1, held("npu1", "job-b"))])
    fired(engine)
    run(engine, [once(FIRED_S + 1, "npu1")])
    assert len(of(wait(engine, FIRED_S + 31), EventKind.PROMOTED)) == 1


def test_a_chip_that_no_job_holds_suppresses_nothing() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, held("npu0", "job-a")), (1, held("npu1", None))])
    fired(engine)
    run(engine, [once(FIRED_S + 1, "npu1")])
    assert len(of(wait(engine, FIRED_S + 31), EventKind.PROMOTED)) == 1


@pytest.mark.parametrize(("reported_s", "suppressed"), [(FIRED_S + 30, True), (FIRED_S + 30.6, False)])
def test_a_job_that_has_just_gone_from_its_chips_was_still_on_both(
    reported_s: float, suppressed: bool
) -> None:
    engine = begin(
        catalog(row(HBM), frequency=[repeat(HBM, 3, correlation_ns=ns(60))]),
        chips=2,
    )
    run(engine, [(1, held("npu0", "job-a")), (1, held("npu1", "job-a"))])
    fired(engine)
    run(engine, [(FIRED_S + 0.5, held("npu0", None)), (FIRED_S + 0.5, held("npu1", None))])
    assert (("suppressed", "npu0", HBM) in emitted(run(engine, [once(reported_s, "npu1")]))) is suppressed


def test_after_a_reboot_nobody_knows_who_held_what() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, held("npu0", "job-a")), (1, held("npu1", "job-b"))])
    fired(engine)
    run(engine, [(FIRED_S + 1, Started(boot_id="boot-2", version="1"))])
    assert ("suppressed", "npu0", HBM) in emitted(run(engine, [once(FIRED_S + 2, "npu1")]))


@pytest.mark.parametrize(
    "given",
    [Started(boot_id="boot-1", version="1"), ProcessesListed(device="npu1", holders=(), known=False)],
    ids=["since the start", "as they cannot be read any more"],
)
def test_who_holds_what_is_unknown_too_where_it_was_known_once(given: Input) -> None:
    """A job may have come to both meanwhile."""
    engine = begin(TABLES, chips=2)
    run(engine, [(1, held("npu0", "job-a")), (1, held("npu1", None))])
    fired(engine)
    run(engine, [(FIRED_S + 1, given)])
    assert ("suppressed", "npu0", HBM) in emitted(run(engine, [once(FIRED_S + 2, "npu1")]))


def test_where_the_holders_of_one_are_unknown_any_chip_suppresses() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, held("npu0", "job-a"))])
    fired(engine)
    assert ("suppressed", "npu0", HBM) in emitted(run(engine, [once(FIRED_S + 1, "npu1")]))


def test_a_device_of_another_kind_is_no_sibling() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("HUNG", "once", "node"))])
    assert fired(engine) == [("promoted", "npu0", HBM)]


def test_a_chip_that_has_gone_is_no_sibling() -> None:
    engine = begin(TABLES)
    run(engine, [(1, seen("npu1", "die1"))])
    run(engine, [(2, DeviceGone(source="ascend", device="npu1", reason="pulled"))])
    assert fired(engine) == [("promoted", "npu0", HBM)]


def test_correlated_occurrences_leave_the_queue_and_the_others_stay() -> None:
    engine = begin(TABLES, chips=2)
    fired(engine)
    run(engine, [once(FIRED_S + 1, "npu1")])
    assert queue(engine, "die0") == [200, 600]
    assert queue(engine, "die1") == []


def test_the_others_that_stayed_count_for_the_next_one() -> None:
    engine = begin(TABLES, chips=2)
    fired(engine)
    run(engine, [once(FIRED_S + 1, "npu1"), once(FIRED_S + 100)])
    assert [event.device for event in of(wait(engine, FIRED_S + 131), EventKind.PROMOTED)] == ["npu0"]


def test_older_occurrences_that_two_chips_showed_together_leave_as_well() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [once(200), once(210, "npu1"), once(600), once(FIRED_S), once(FIRED_S + 1, "npu1")])
    assert queue(engine, "die0") == [600]
    assert queue(engine, "die1") == []


def test_a_third_chip_that_shows_it_within_the_time_counts_nothing_either() -> None:
    engine = begin(TABLES, chips=3)
    fired(engine)
    run(engine, [once(FIRED_S + 1, "npu1"), once(FIRED_S + 2, "npu2"), once(FIRED_S + 3)])
    assert [queue(engine, f"die{index}") for index in range(3)] == [[200, 600], [], []]


def test_two_chips_that_both_fire_together_are_both_suppressed() -> None:
    engine = begin(TABLES, chips=2)
    steps = [once(at_s + index, f"npu{index}") for at_s in (100, 500, 900) for index in (0, 1)]
    suppressed = of(run(engine, steps), EventKind.SUPPRESSED)
    assert sorted(event.device for event in suppressed) == ["npu0", "npu1"]
    assert queue(engine, "die0") == queue(engine, "die1") == []


@pytest.mark.parametrize(("user_induced", "kinds"), [(True, ["suppressed"] * 2), (False, ["promoted"] * 2)])
def test_a_job_that_comes_and_crashes_between_two_polls_separates_no_chip(
    user_induced: bool, kinds: list[str]
) -> None:
    """Its processes were never listed, so both chips are known to be free; hardware is no job's there."""
    given = catalog(
        row(HBM, Level.RESTART_REQUEST, user_induced=user_induced),
        frequency=[repeat(HBM, 2, correlation_ns=ns(30))],
    )
    engine = begin(given, chips=2)
    run(engine, [(0, held("npu0", None)), (0, held("npu1", None))])
    crashes = [(at_s, signal(HBM, "once", f"npu{chip}")) for at_s in (100, 900) for chip in (0, 1)]
    events = run(engine, [*crashes, (931, Tick())])
    assert [event.kind for event in events if event.kind in ("suppressed", "promoted")] == kinds
