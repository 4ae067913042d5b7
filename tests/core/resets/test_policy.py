"""Which faults ask for a reset, and how one goes from its proposal to its end."""

import pytest

from nodeagent.core.model import (
    ActionState,
    CatalogChanged,
    EventKind,
    Handling,
    Level,
    ResetMode,
    ResetStage,
)
from tests.core.build import active, held, ns, order, row, signal, stands
from tests.core.resets.ring import BROKEN, Ring, ring_catalog


def test_a_fault_that_wants_a_reset_gets_one_and_is_over_once_every_member_was_read() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.help()
    assert ring.emitted() == [
        ("action_proposed", "reset of npu0, npu1 for RestartNPU"),
        ("action_started", "reset of npu0, npu1"),
        ("action_finished", "done: verified by a poll of every member"),
    ]
    assert [(action.id, action.devices) for action in ring.actions] == [("die0/reset#1", ("die0", "die1"))]
    assert ring.open_on("npu0") == []
    assert ring.verdicts() == ["ALLOW", "ALLOW"]


def test_a_poll_that_could_not_read_all_confirms_the_fault_that_it_shows() -> None:
    ring = Ring()
    ring.fault()
    ring.wait(20)
    ring.do(active(BROKEN, begun_s=ring.at_s, complete=False))
    ring.wait(10.001)
    assert ring.emitted()[-1] == ("action_started", "reset of npu0, npu1")


def test_a_poll_that_could_not_read_all_confirms_no_fault_that_it_does_not_show() -> None:
    ring = Ring()
    ring.fault()
    ring.wait(20)
    ring.do(active("SubHealthFault", begun_s=ring.at_s, complete=False))
    ring.wait(10.001)
    assert ring.emitted()[-1] == (
        "action_proposed",
        "it waits: no poll has shown the fault since it was proposed",
    )


def test_a_poll_that_could_not_read_all_proves_no_reset() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.wait(5)
    ring.result()
    ring.wait(1)
    for name in ring.names:
        ring.do(active(device=name, begun_s=ring.at_s, complete=False))
    assert ring.stages() == [ResetStage.VERIFYING]


def test_while_it_is_pending_the_whole_group_takes_no_work_and_the_others_keep_theirs() -> None:
    ring = Ring()
    ring.fault()
    assert stands(ring.engine, "npu0")[1:] == ("ISOLATE", "RESCHEDULE")
    assert stands(ring.engine, "npu1")[1:] == ("ISOLATE", "NONE")
    ring.recover()
    assert ring.emitted()[-1] == ("action_finished", "refused: the fault is gone")
    assert ring.verdicts() == ["ALLOW", "ALLOW"]


def test_chips_of_another_group_are_left_alone() -> None:
    ring = Ring(chips=1)
    ring.fault()
    assert ring.emitted()[0] == ("action_proposed", "reset of npu0 for RestartNPU")


@pytest.mark.parametrize(
    "level", [Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE_NPU, Level.SEPARATE_NPU]
)
def test_levels_that_want_none_get_none(level: Level) -> None:
    ring = Ring()
    ring.fault(level.value)
    ring.wait(3600)
    assert ring.emitted() == []


def test_a_request_is_tolerated_before_a_reset_is_proposed() -> None:
    ring = Ring()
    ring.fault(Level.RESTART_REQUEST.value)
    ring.wait(60)
    assert ring.emitted() == []
    ring.wait(0.001)
    assert ring.emitted() == [("action_proposed", "reset of npu0, npu1 for RestartRequest")]


def test_the_applications_fault_and_an_injected_one_ask_for_nothing() -> None:
    mine = row("MINE", Level.RESTART_NPU, user_induced=True)
    base = ring_catalog()
    ring = Ring(type(base)(digest="d", rows={**base.rows, "MINE": mine}, settings=base.settings))
    ring.fault("MINE")
    ring.do(signal(BROKEN, injected=True))
    ring.wait(3600)
    assert ring.emitted() == []


def test_in_mode_ask_a_person_decides() -> None:
    ring = Ring(ring_catalog(ResetMode.ASK))
    ring.propose_and_start()
    assert (ring.stages(), ring.actions) == ([ResetStage.ASKING], [])
    ring.do(order("approve", "die0/reset#1"))
    assert ring.emitted()[1:] == [
        ("action_proposed", "it waits for an operator to approve it"),
        ("action_proposed", "approved by uid:1000: bench"),
        ("action_started", "reset of npu0, npu1"),
    ]


def test_a_person_may_refuse() -> None:
    ring = Ring(ring_catalog(ResetMode.ASK))
    ring.propose_and_start()
    ring.do(order("refuse", "die0/reset#1"))
    assert ring.emitted()[-1] == ("action_finished", "refused: refused by uid:1000: bench")
    ring.poll_all(BROKEN)
    assert ring.actions == []


def test_silence_is_a_refusal() -> None:
    ring = Ring(ring_catalog(ResetMode.ASK))
    ring.propose_and_start()
    ring.wait(600)
    assert ring.emitted()[-1] == ("action_finished", "refused: it was not approved in time")


def test_off_proposes_nothing() -> None:
    ring = Ring(ring_catalog(ResetMode.OFF))
    ring.propose_and_start()
    assert ring.emitted() == []


def test_a_dry_run_emits_the_same_and_does_nothing() -> None:
    dry, wet = Ring(ring_catalog(ResetMode.DRY_RUN)), Ring()
    for ring in (dry, wet):
        ring.propose_and_start()
    assert dry.emitted()[:2] == wet.emitted()
    assert dry.emitted()[2:] == [("action_finished", "done: dry run: nothing was done")]
    assert dry.actions == []
    assert dry.verdicts() == ["ISOLATE", "ALLOW"]
    dry.wait(7200)
    dry.poll_all(BROKEN)
    assert len(dry.emitted()) == 3


def test_another_reset_waits_until_the_first_has_ended_and_cooled_down() -> None:
    ring = Ring(chips=2)
    ring.propose_and_start()
    third = ring.engine.step(ns(ring.at_s), order("reset", "npu0"))
    assert third.records == ()
    ring.help()
    ring.fault()
    ring.poll_all(BROKEN)
    ring.wait(29.9)
    assert len(ring.actions) == 1
    ring.poll_all(BROKEN)
    ring.wait(0.2)
    assert len(ring.actions) == 2


def test_the_tool_says_it_helped_and_the_fault_is_still_there() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.wait(5)
    ring.result()
    ring.wait(1)
    ring.poll_all(BROKEN)
    ring.wait(150)
    assert ring.emitted()[-1] == (
        "action_finished",
        "failed: no poll showed npu0 healthy; once more after the cool-down",
    )
    ring.poll_all(BROKEN)
    ring.wait(30.001)
    assert len(ring.actions) == 2
    ring.result()
    ring.poll(device="npu1")
    ring.wait(150.001)
    assert ring.emitted()[-1] == ("action_finished", "failed: no poll showed npu0 healthy")
    assert ring.open_on("npu0") == [BROKEN, "reset_failed"]
    assert ring.verdicts() == ["ISOLATE", "ALLOW"]


@pytest.mark.parametrize("how", [ActionState.FAILED, ActionState.TIMED_OUT, ActionState.INTERRUPTED])
def test_one_more_is_tried_and_then_a_person_is_needed(how: ActionState) -> None:
    ring = Ring()
    ring.propose_and_start()
    for _ in range(2):
        ring.wait(1)
        ring.result(how, "the tool said so")
        ring.poll_all(BROKEN)
        ring.wait(31)
        ring.poll_all(BROKEN)
    finished = [why for kind, why in ring.emitted() if kind == "action_finished"]
    assert finished == [
        f"{how}: the tool said so; once more after the cool-down",
        f"{how}: the tool said so",
    ]
    assert ring.open_on("npu1") == ["reset_failed"]
    ring.wait(24 * 3600)
    ring.poll_all(BROKEN)
    assert len(ring.actions) == 2


def test_the_fault_returns_after_each_reset_until_the_limit() -> None:
    ring = Ring()
    for _ in range(4):
        ring.propose_and_start()
        if ring.stages() and ring.stages()[-1] is ResetStage.RUNNING:
            ring.help()
        ring.wait(300)
    limits = [event for event in ring.events if event.code == "reset_limit_reached"]
    assert len(ring.actions) == 3
    assert [(event.kind, event.device, event.evidence) for event in limits] == [
        (EventKind.RAISED, "npu0", {"why": "npu0 had 3 resets within 6 h"})
    ]
    assert ring.verdicts() == ["ISOLATE", "ALLOW"]


def test_a_member_pays_for_the_resets_of_its_group() -> None:
    ring = Ring()
    for _ in range(3):
        ring.propose_and_start()
        ring.help()
        ring.wait(300)
    ring.fault(device="npu1")
    assert ring.open_on("npu1") == [BROKEN, "reset_limit_reached"]


def test_the_count_of_resets_survives_another_boot() -> None:
    ring = Ring()
    for _ in range(3):
        ring.propose_and_start()
        ring.help()
        ring.wait(300)
    ring.start("boot-2")
    for name in ring.names:
        ring.do(held(name, None))
    ring.fault()
    assert ring.open_on("npu0") == [BROKEN, "reset_limit_reached"]


def test_after_the_window_it_may_be_reset_again() -> None:
    ring = Ring()
    for _ in range(3):
        ring.propose_and_start()
        ring.help()
    ring.wait(6 * 3600)
    ring.propose_and_start()
    assert len(ring.actions) == 4


def test_after_a_start_the_fault_must_be_shown_anew() -> None:
    ring = Ring()
    ring.fault()
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.start()
    ring.nobody_holds()
    ring.wait(11)
    assert ring.actions == []
    ring.poll_all(BROKEN)
    assert len(ring.actions) == 1


def test_a_reload_of_the_tables_resets_nothing() -> None:
    soft, hard = ring_catalog(), ring_catalog()
    soft = type(soft)(digest="soft", rows={**soft.rows, "X": row("X")}, settings=soft.settings)
    hard = type(hard)(
        digest="hard", rows={**hard.rows, "X": row("X", Level.RESTART_NPU)}, settings=hard.settings
    )
    ring = Ring(soft)
    ring.engine = type(ring.engine)({"soft": soft, "hard": hard})
    ring.start()
    ring.fault("X")
    ring.wait(10)
    ring.do(CatalogChanged(digest="hard"))
    ring.wait(10)
    ring.poll_all("X")
    assert (stands(ring.engine)[2], ring.emitted()) == (Handling.RESCHEDULE, [])
    ring.fault("X")
    assert ring.emitted()[0][0] == "action_proposed"


def test_a_person_may_ask_for_a_reset_without_a_fault() -> None:
    ring = Ring()
    ring.do(order("reset", "npu1"))
    assert ring.emitted() == [("action_proposed", "reset of npu1, npu0 for uid:1000: bench")]
    ring.wait(20)
    ring.poll_all()
    ring.wait(11)
    ring.help()
    assert ring.emitted()[-1] == ("action_finished", "done: verified by a poll of every member")
