"""Faults of the application: the job restarts or moves, the chip is not blamed."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import EventKind, Handling, Kind, Level, Verdict
from tests.core.build import (
    DAY_S,
    begin,
    catalog,
    held,
    ns,
    of,
    repeat,
    row,
    run,
    signal,
    stands,
    wait,
    xid,
)

CODE = "80C98002"
TABLES = catalog(
    row(CODE, Level.RESTART_BUSINESS, user_induced=True),
    row("XID_13", Level.RESTART_BUSINESS, user_induced=True, clear_on=ClearOn(quiet_ns=ns(600))),
    frequency=[repeat("*", 3, at_least=Level.RESTART_REQUEST)],
)


def test_it_restarts_the_job_and_leaves_the_chip_in_use() -> None:
    engine = begin(TABLES)
    (raised,) = run(engine, [(1, signal(CODE))])
    assert (raised.user_induced, raised.verdict, raised.handling) == (
        True,
        Verdict.ALLOW,
        Handling.RESTART_JOB,
    )


def test_from_the_third_in_24_h_the_job_moves() -> None:
    engine = begin(TABLES)
    run(engine, [(1, held("npu0", "job-a"))])
    handlings = []
    for at_s in (10, 20, 30):
        run(engine, [(at_s, signal(CODE))])
        handlings.append(stands(engine)[2])
        run(engine, [(at_s + 2, signal(CODE, "recover"))])
    assert handlings == [Handling.RESTART_JOB, Handling.RESTART_JOB, Handling.RESCHEDULE]


def test_the_event_that_raises_the_third_says_so_itself() -> None:
    engine = begin(TABLES)
    events = run(
        engine,
        [
            step
            for at_s in (10, 20, 30)
            for step in ((at_s, signal(CODE)), (at_s + 1, signal(CODE, "recover")))
        ],
    )
    assert [(event.kind, event.handling) for event in events[4:]] == [
        (EventKind.RAISED, Handling.RESCHEDULE),
        (EventKind.CLEARED, Handling.NONE),
    ]


def test_a_day_later_it_begins_anew() -> None:
    engine = begin(TABLES)
    run(engine, [(1, held("npu0", "job-a"))])
    for at_s in (10, 20, 30 + DAY_S):
        run(engine, [(at_s, signal(CODE)), (at_s + 1, signal(CODE, "recover"))])
    run(engine, [(40 + DAY_S, signal(CODE))])
    assert stands(engine)[2] is Handling.RESTART_JOB


def test_the_many_lines_of_one_crash_are_one() -> None:
    engine = begin(TABLES)
    run(engine, [(at_s, xid("XID_13", "0000:00:00.0", count=40)) for at_s in range(1, 60)])
    assert stands(engine)[1:] == (Verdict.ALLOW, Handling.RESTART_JOB)


def test_it_never_counts_against_a_chip_that_a_job_holds() -> None:
    engine = begin(TABLES)
    run(engine, [(1, held("npu0", "job-a"))])
    events = run(engine, [(at_s, signal(CODE)) for at_s in range(2, 12)])
    assert of(events, EventKind.PROMOTED) == []
    assert stands(engine)[1] is Verdict.ALLOW


def test_a_chip_whose_holders_are_unknown_is_taken_as_held() -> None:
    engine = begin(TABLES)
    events = run(engine, [(at_s, signal(CODE)) for at_s in range(2, 12)])
    assert of(events, EventKind.PROMOTED) == []


def test_what_is_reported_just_after_its_process_has_gone_still_counts_for_no_hardware() -> None:
    engine = begin(TABLES)
    for at_s in (100, 200, 300):
        run(engine, [(at_s, held("npu0", "job-a")), (at_s + 10, held("npu0", None))])
        events = run(engine, [(at_s + 15, signal(CODE)), (at_s + 16, signal(CODE, "recover"))])
        assert of(events, EventKind.PROMOTED) == []


def test_on_a_chip_known_to_be_free_it_counts_towards_hardware() -> None:
    engine = begin(TABLES)
    run(engine, [(1, held("npu0", None))])
    events = run(engine, [(at_s, signal(CODE)) for at_s in (2, 3, 4)])
    assert [event.code for event in of(events, EventKind.PROMOTED)] == [CODE]
    assert stands(engine)[1] is Verdict.ISOLATE


def test_the_job_of_ten_crashes_on_all_chips_isolates_none() -> None:
    engine = begin(TABLES, chips=8)
    run(engine, [(1, held(f"npu{chip}", "job-a")) for chip in range(8)])
    for crash in range(10):
        at_s = 10 + 100 * crash
        run(engine, [(at_s + chip, signal(CODE, device=f"npu{chip}")) for chip in range(8)])
        run(engine, [(at_s + 50, signal(CODE, "recover", f"npu{chip}")) for chip in range(8)])
    assert engine.view().promotions == ()
    assert {view.verdict for view in engine.view().devices} == {Verdict.ALLOW}


def test_it_never_escalates_with_time() -> None:
    engine = begin(catalog(row(CODE, Level.RESTART_REQUEST, user_induced=True)))
    run(engine, [(1, signal(CODE))])
    assert wait(engine, DAY_S) == []


def test_more_lines_of_the_third_time_do_not_take_back_that_the_job_moves() -> None:
    engine = begin(TABLES)
    run(engine, [(at_s, xid("XID_13", "npu0")) for at_s in (1, 300, 600, 601)])
    assert stands(engine)[2] is Handling.RESCHEDULE


def test_of_the_node_it_asks_nothing_of_anybody_however_often_it_comes() -> None:
    """A container that wants too much memory is one of many on the node, and maybe no job at all."""
    engine = begin(catalog(row("OOM_CGROUP", kind=Kind.HOST, vendor="linux", user_induced=True)))
    for at_s in (10, 20, 30):
        (raised, cleared) = run(
            engine,
            [
                (at_s, signal("OOM_CGROUP", "occur", "node", source="kmsg")),
                (at_s + 5, signal("OOM_CGROUP", "recover", "node", source="kmsg")),
            ],
        )
        assert (raised.kind, raised.user_induced) == (EventKind.RAISED, True)
        assert (raised.verdict, raised.handling) == (Verdict.ALLOW, Handling.NONE)
        assert cleared.kind is EventKind.CLEARED
