"""A person's orders: whose hold it is, what changes its end, and who ends it."""

from typing import Any

import pytest

from nodeagent.core.model import EventKind, Handling, Operator, Verdict
from nodeagent.core.state import limits
from tests.core.build import begin, catalog, device_view, emitted, ns, order, run, stands, wait


def alices(what: str, **words: Any) -> Operator:
    """By root, in the name of alice."""
    return order(what, who="uid:0", **{"owner": "alice", **words})


def bobs(what: str, **words: Any) -> Operator:
    return order(what, who="uid:0", **{"owner": "bob", **words})


def test_an_isolation_stands_until_its_owner_lifts_it() -> None:
    engine = begin(catalog())
    (isolated,) = run(engine, [(1, alices("isolate", reason="fan swap"))])
    assert (isolated.kind, isolated.why) == (EventKind.ISOLATED, "alice (uid:0): fan swap")
    assert stands(engine)[1:] == (Verdict.ISOLATE, Handling.RESCHEDULE)
    assert [reason.text for reason in device_view(engine).reasons] == ["alice: fan swap"]
    (released,) = run(engine, [(2, alices("release", reason="done"))])
    assert (released.kind, released.verdict) == (EventKind.RELEASED, Verdict.ALLOW)
    assert released.why == "alice (uid:0): done"


def test_another_person_does_not_lift_it_though_the_same_user_calls() -> None:
    engine = begin(catalog())
    events = run(engine, [(1, alices("isolate")), (2, bobs("release"))])
    assert emitted(events) == [("isolated", "npu0", "")]


def test_what_was_set_in_nobodys_name_is_its_users() -> None:
    engine = begin(catalog())
    run(engine, [(1, order("isolate", who="uid:0")), (2, alices("release"))])
    assert engine.view().holds == ()


def test_an_isolation_with_an_end_ends_by_itself() -> None:
    engine = begin(catalog())
    run(engine, [(1, order("isolate", until_ns=ns(60)))])
    assert emitted(wait(engine, 60)) == [("released", "npu0", "")]


def test_an_isolation_that_is_over_already_is_emitted_and_ends_at_once() -> None:
    engine = begin(catalog())
    events = run(engine, [(10, order("isolate", until_ns=ns(5)))])
    assert [(event.kind, event.at_ns) for event in events] == [
        (EventKind.ISOLATED, ns(10)),
        (EventKind.RELEASED, ns(10)),
    ]


@pytest.mark.parametrize("what", ["isolate", "quiesce"])
@pytest.mark.parametrize(
    ("first_s", "second_s", "ends_s"), [(60, 90, 90), (60, None, None), (60, 30, 60), (None, 60, None)]
)
def test_the_same_order_again_only_ever_makes_it_longer(
    what: str, first_s: int | None, second_s: int | None, ends_s: int | None
) -> None:
    engine = begin(catalog())
    until = [None if each is None else ns(each) for each in (first_s, second_s)]
    run(engine, [(1, alices(what, until_ns=until[0])), (2, alices(what, until_ns=until[1]))])
    (hold,) = engine.view().holds
    assert (hold.since_ns, hold.until_ns) == (ns(1), None if ends_s is None else ns(ends_s))


def test_an_order_that_changes_nothing_is_neither_emitted_nor_stored() -> None:
    engine = begin(catalog())
    run(engine, [(1, alices("isolate"))])
    outcome = engine.step(ns(2), alices("isolate", until_ns=ns(5)))
    assert (outcome.events, outcome.records) == ((), ())


@pytest.mark.parametrize(
    "other", [bobs("isolate", until_ns=ns(5)), alices("isolate", reason="x", until_ns=ns(5))]
)
def test_another_owner_or_another_reason_is_another_hold_and_touches_none(other: Operator) -> None:
    engine = begin(catalog())
    run(engine, [(1, alices("isolate", reason="RMA")), (2, other)])
    assert len(engine.view().holds) == 2
    wait(engine, 6)
    assert [(hold.owner, hold.reason, hold.until_ns) for hold in engine.view().holds] == [
        ("alice", "RMA", None)
    ]
    assert stands(engine)[1] is Verdict.ISOLATE


def test_a_release_ends_all_that_its_owner_set_on_the_device_and_no_more() -> None:
    engine = begin(catalog(), chips=2)
    run(engine, [(1, alices("isolate", reason="RMA")), (2, alices("isolate", reason="burn-in"))])
    run(engine, [(3, bobs("isolate")), (4, alices("isolate", device="npu1")), (5, alices("release"))])
    assert [(hold.owner, hold.device_id) for hold in engine.view().holds] == [
        ("bob", "die0"),
        ("alice", "die1"),
    ]


def test_a_release_by_an_id_ends_that_one_alone_also_anothers_and_says_whose_it_was() -> None:
    engine = begin(catalog())
    run(engine, [(1, alices("isolate", reason="RMA")), (2, alices("isolate")), (3, bobs("isolate"))])
    first, _, others = (hold.id for hold in engine.view().holds)
    (mine,) = run(engine, [(4, alices("release", only=first))])
    (his,) = run(engine, [(5, alices("release", only=others, reason="he is ill"))])
    assert (mine.condition_id, mine.why) == (first, "alice (uid:0): bench")
    assert (his.condition_id, his.why) == (others, "alice (uid:0): he is ill; it was the hold of bob")
    assert [hold.owner for hold in engine.view().holds] == ["alice"]


def test_a_release_by_force_ends_everybodys() -> None:
    engine = begin(catalog())
    run(engine, [(1, alices("isolate")), (2, bobs("isolate")), (3, bobs("release", force=True))])
    assert engine.view().holds == ()


def test_a_quiesce_is_its_owners_like_any_hold() -> None:
    engine = begin(catalog())
    run(engine, [(1, alices("quiesce", reason="driver")), (2, alices("quiesce")), (3, bobs("quiesce"))])
    ids = [hold.id.rpartition("/")[2] for hold in engine.view().holds]
    assert ids == ["quiesce:alice#1", "quiesce:alice#2", "quiesce:bob#1"]
    assert emitted(run(engine, [(4, alices("resume"))])) == [("resumed", "node", "")] * 2
    assert emitted(run(engine, [(5, alices("resume"))])) == []
    assert emitted(run(engine, [(6, alices("resume", force=True))])) == [("resumed", "node", "")]


def test_an_isolation_and_a_quiesce_of_one_owner_end_apart() -> None:
    engine = begin(catalog())
    run(engine, [(1, alices("quiesce")), (2, alices("isolate", device="node")), (3, alices("resume"))])
    assert [hold.id.rpartition("/")[2] for hold in engine.view().holds] == ["hold:alice#1"]


def test_one_owner_cannot_fill_a_device_with_holds() -> None:
    engine = begin(catalog())
    for number in range(limits.MAX_HOLDS_OF_OWNER):
        run(engine, [(1, alices("isolate", reason=f"run {number}"))])
    (refused,) = run(engine, [(2, alices("isolate", reason="one more"))])
    assert (refused.kind, refused.why) == (EventKind.NOTICE, "alice holds npu0 for 16 reasons already")
    assert emitted(run(engine, [(3, bobs("isolate"))])) == [("isolated", "npu0", "")]


def test_an_order_nobody_knows_and_one_for_a_device_nobody_knows_change_nothing() -> None:
    engine = begin(catalog())
    assert engine.step(ns(1), order("dance")).records == ()
    assert engine.step(ns(1), order("isolate", "npu9")).records == ()
