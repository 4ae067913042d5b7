"""A person's orders."""

from nodeagent.core.model import EventKind, Handling, Verdict
from tests.core.build import begin, catalog, device_view, ns, order, run, stands, told, wait


def test_an_isolation_stands_until_its_owner_lifts_it() -> None:
    engine = begin(catalog())
    (isolated,) = run(engine, [(1, order("isolate"))])
    assert (isolated.kind, isolated.why) == (EventKind.ISOLATED, "uid:1000: bench")
    assert stands(engine)[1:] == (Verdict.ISOLATE, Handling.RESCHEDULE)
    (released,) = run(engine, [(2, order("release"))])
    assert (released.kind, released.verdict) == (EventKind.RELEASED, Verdict.ALLOW)


def test_another_person_does_not_lift_it() -> None:
    engine = begin(catalog())
    assert told(run(engine, [(1, order("isolate")), (2, order("release", who="uid:1001"))])) == [
        ("isolated", "npu0", "")
    ]


def test_an_isolation_with_an_end_ends_by_itself() -> None:
    engine = begin(catalog())
    run(engine, [(1, order("isolate", until_ns=ns(60)))])
    assert told(wait(engine, 60)) == [("released", "npu0", "")]


def test_an_isolation_that_is_over_already_is_told_and_ends_at_once() -> None:
    engine = begin(catalog())
    events = run(engine, [(10, order("isolate", until_ns=ns(5)))])
    assert [(event.kind, event.at_ns) for event in events] == [
        (EventKind.ISOLATED, ns(10)),
        (EventKind.RELEASED, ns(10)),
    ]


def test_ordering_it_again_changes_its_end() -> None:
    engine = begin(catalog())
    run(engine, [(1, order("isolate", until_ns=ns(60))), (2, order("isolate"))])
    assert wait(engine, 1000) == []
    assert len(engine.view().holds) == 1


def test_two_people_hold_each_for_themselves() -> None:
    engine = begin(catalog())
    run(engine, [(1, order("isolate")), (2, order("isolate", who="uid:1001")), (3, order("release"))])
    assert [reason.text for reason in device_view(engine).reasons] == ["uid:1001: bench"]


def test_a_release_of_one_thing_leaves_the_others() -> None:
    engine = begin(catalog())
    run(engine, [(1, order("isolate")), (2, order("isolate", who="uid:1001"))])
    (mine, other) = (hold.id for hold in engine.view().holds)
    assert run(engine, [(3, order("release", only=other))]) == []
    (released,) = run(engine, [(4, order("release", only=mine))])
    assert (released.kind, released.condition_id) == (EventKind.RELEASED, mine)


def test_an_order_nobody_knows_and_one_for_a_device_nobody_knows_change_nothing() -> None:
    engine = begin(catalog())
    assert engine.step(ns(1), order("dance")).records == ()
    assert engine.step(ns(1), order("isolate", "npu9")).records == ()
