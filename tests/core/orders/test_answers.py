"""What a person is answered who gives an order: taken, with the ids of what it was about, or why not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from nodeagent.core.model import Answer, Operator, Refused, ResetMode, Tick
from nodeagent.core.state import limits
from tests.core.build import begin, catalog, held, lost, ns, signal
from tests.core.resets.histories import History, histories, moderately
from tests.core.resets.histories import begin as begin_policy
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

BY_ROOT = Operator(who="uid:0", owner="alice", what="", device="npu0", reason="done")


def ask(ring: Ring, what: str, device: str = "npu0", **words: Any) -> Answer:
    return answer_to(ring, replace(BY_ROOT, what=what, device=device, **words))


def answer_to(ring: Ring, order: Operator) -> Answer:
    answer = ring.engine.step(ns(ring.at_s), order).answer
    assert answer is not None
    return answer


def refused(reason: str, how: Refused = Refused.NOT_POSSIBLE) -> Answer:
    return Answer(refused=how, reason=reason)


def test_an_order_that_is_taken_names_what_it_made_found_and_ended() -> None:
    ring = Ring()
    made = ask(ring, "isolate")
    again = ask(ring, "isolate")
    ended = ask(ring, "release")
    assert made == again == ended == Answer(ids=("die0/hold:alice#1",))
    assert made.accepted


def test_what_is_no_order_has_no_answer() -> None:
    assert begin(catalog()).step(ns(1), Tick()).answer is None


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (replace(BY_ROOT, what="dance"), "'dance' is no order"),
        *(
            (replace(BY_ROOT, what=what, device="npu9"), "device: 'npu9' is not known")
            for what in ("isolate", "release", "reset")
        ),
        (
            replace(BY_ROOT, what="release", only="no/such#1"),
            "id: 'no/such#1' is not on npu0; there is: nothing",
        ),
        (
            replace(BY_ROOT, what="approve", device="npu9"),
            "action_id: 'npu9' is not known; pending: none",
        ),
        (replace(BY_ROOT, what="refuse"), "action_id: no reset is pending on 'npu0'; pending: none"),
    ],
)
def test_an_order_about_what_is_not_there_is_refused_with_the_reason(order: Operator, reason: str) -> None:
    assert answer_to(Ring(), order) == refused(reason, Refused.UNKNOWN)


# ---------------------------------------------------------------------- release


def faulty() -> Ring:
    """Isolated by alice, and broken since."""
    ring = Ring()
    ask(ring, "isolate")
    ring.fault()
    return ring


def test_a_device_that_is_still_faulty_goes_back_into_service_by_force_only() -> None:
    ring = faulty()
    reason = "npu0 is still faulty: RestartNPU at RestartNPU; clear it first, or use --force"
    assert ask(ring, "release", only_if_well=True) == refused(reason)
    assert [hold.owner for hold in ring.engine.view().holds] == ["alice"]
    assert ask(ring, "release", force=True).ids == ("die0/hold:alice#1",)


def test_a_device_that_is_not_observed_goes_back_into_service_by_force_only() -> None:
    ring = Ring()
    ask(ring, "isolate")
    ring.do(lost())
    reason = "npu0 is not observed; wait until it is, or use --force"
    assert ask(ring, "release", only_if_well=True) == refused(reason)
    ring.fault()
    why = "is still faulty: RestartNPU at RestartNPU, and is not observed"
    reason = f"npu0 {why}; clear it first, or use --force"
    assert ask(ring, "release", only_if_well=True) == refused(reason)


def test_a_fault_that_came_after_a_person_looked_is_seen_by_the_order() -> None:
    ring = Ring()
    ask(ring, "isolate")
    looked = ring.engine.view().conditions
    ring.fault()
    assert looked == ()
    assert not ask(ring, "release", only_if_well=True).accepted


def test_what_only_a_person_clears_and_what_is_milder_keeps_nobody_from_a_release() -> None:
    ring = Ring()
    ring.do(signal("reset_failed", "once", "npu0", source="agent"))
    ring.do(signal("RestartBusiness", "occur", "npu0"))
    assert ask(ring, "release", only_if_well=True).ids == ("die0/reset_failed#1",)


def test_a_release_that_an_earlier_version_took_is_taken_when_it_is_replayed() -> None:
    """It looked before it asked, and stored no word of that."""
    ring = faulty()
    ring.engine.replay(ns(ring.at_s), Operator(who="uid:0", owner="alice", what="release", device="die0"))
    assert "alice" not in [hold.owner for hold in ring.engine.view().holds]


def test_who_has_nothing_to_release_gets_the_name_of_who_has() -> None:
    ring = Ring()
    assert ask(ring, "release") == refused("there is nothing to release on npu0")
    ask(ring, "isolate", owner="bob", reason="fan swap")
    by_bob = "npu0 is isolated by bob (fan swap), id die0/hold:bob#1"
    reason = f"{by_bob}; alice has no hold there: use --owner or --id to name one, or --force"
    assert ask(ring, "release") == refused(reason)
    named = "id: 'x' is not on npu0; there is: die0/hold:bob#1"
    assert ask(ring, "release", only="x") == refused(named, Refused.UNKNOWN)
    ask(ring, "release", force=True)
    ask(ring, "reset")
    reason = "npu0: reset pending: npu0, npu1; to stop it: nodeagent approve npu0 --refuse --reason WHY"
    assert ask(ring, "release") == refused(reason)


# ---------------------------------------------------------------------- quiesce, isolate


def test_who_has_quiesced_nothing_gets_the_name_of_who_has() -> None:
    ring = Ring()
    assert ask(ring, "resume", "node") == refused("this node is not quiesced")
    ask(ring, "quiesce", "node", owner="bob", reason="driver upgrade")
    by_bob = "quiesced by bob (driver upgrade), id slot:node/quiesce:bob#1"
    reason = f"this node is {by_bob}; alice has no hold there: use --owner or --id to name one, or --force"
    assert ask(ring, "resume", "node") == refused(reason)
    reason = f"id: 'x' is not a quiesce of this node; it is {by_bob}"
    assert ask(ring, "resume", "node", only="x") == refused(reason)
    assert ask(ring, "resume", "node", owner="bob").ids == ("slot:node/quiesce:bob#1",)


def test_where_there_is_no_room_for_another_hold_that_is_said() -> None:
    ring = Ring()
    for number in range(limits.MAX_HOLDS_OF_OWNER):
        ask(ring, "quiesce", "node", reason=f"run {number}")
    reason = "alice holds node for 16 reasons already; release some first"
    assert ask(ring, "quiesce", "node") == refused(reason, Refused.NO_ROOM)


# ---------------------------------------------------------------------- resets


def test_a_reset_that_begins_is_named_and_one_that_does_not_says_why() -> None:
    ring = Ring()
    assert ask(ring, "reset").ids == ("die0/reset#1",)
    assert ask(ring, "reset", "npu1") == refused(
        "die0/reset#1 of npu0, npu1 is in progress already (announced)"
    )
    assert ask(ring, "reset", "node") == refused("node is not a chip: only NPUs and GPUs are reset")


def test_a_reset_is_approved_by_its_id_or_a_device_of_it_and_once() -> None:
    ring = Ring(ring_catalog(ResetMode.ASK))
    ring.fault()
    assert ask(ring, "approve", "npu1") == Answer(ids=("die0/reset#1",))
    already = "action_id: die0/reset#1 is approved already"
    assert ask(ring, "approve", "die0/reset#1") == refused(already)
    assert ask(ring, "refuse", "npu0") == Answer(ids=("die0/reset#1",))
    ended = "action_id: die0/reset#1 has ended: refused: refused by alice (uid:0): done"
    assert ask(ring, "approve", "die0/reset#1") == refused(ended)


def test_a_reset_that_asks_nobody_cannot_be_approved_nor_refused_once_it_runs() -> None:
    ring = Ring()
    ring.fault()
    reason = "action_id: die0/reset#1 needs no approval: its mode is on, and only mode ask waits for one"
    assert ask(ring, "approve") == refused(reason)
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.wait(10.001)
    assert ask(ring, "refuse", "die0/reset#1") == refused("action_id: die0/reset#1 is running")
    none = "action_id: no reset is pending on 'npu1'; pending: none"
    assert ask(ring, "refuse", "npu1") == refused(none, Refused.UNKNOWN)


def test_an_approval_that_named_a_device_is_replayed_as_it_was_taken() -> None:
    ring, replayed = Ring(ring_catalog(ResetMode.ASK)), Ring(ring_catalog(ResetMode.ASK))
    for one in (ring, replayed):
        one.do(held("npu1", "slurm:7"))
        one.fault()
    order = replace(BY_ROOT, what="approve", device="npu1")
    (record,) = ring.engine.step(ns(ring.at_s), order).records
    replayed.engine.replay(ns(ring.at_s), record)
    assert replayed.engine.view() == ring.engine.view()


@moderately
@given(histories())
def test_what_is_taken_names_something_and_what_is_refused_says_why_and_changes_nothing(
    history: History,
) -> None:
    engine, _ = begin_policy()
    for at_ns, one in history:
        outcome = engine.step(at_ns, one)
        answer = outcome.answer
        assert (answer is not None) is isinstance(one, Operator)
        if answer is not None and answer.accepted:
            assert (bool(answer.ids), answer.reason) == (True, "")
        elif answer is not None:
            assert (answer.ids, bool(answer.reason), outcome.records) == ((), True, ())
