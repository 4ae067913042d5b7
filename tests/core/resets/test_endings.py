"""What a reset leaves behind however it ends: which faults are over, and who needs a person."""

from dataclasses import replace

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import ActionResult, ActionState, Level, ResetStage
from tests.core.build import held, order, row
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

OTHER = Level.RESTART_REQUEST.value


def test_a_fault_that_the_polls_still_show_is_not_over_by_the_reset_for_another() -> None:
    ring = Ring()
    ring.fault(OTHER, "npu1")
    ring.fault()
    ring.wait(20)
    ring.poll(BROKEN)
    ring.poll(OTHER, device="npu1")
    ring.wait(10.001)
    ring.wait(5)
    ring.result()
    ring.wait(1)
    ring.poll()
    ring.poll(OTHER, device="npu1")
    assert ring.emitted()[-1] == ("action_finished", "done: verified by a poll of every member")
    assert ring.open_on("npu0") == []
    assert ring.open_on("npu1") == [OTHER]
    assert ring.verdicts() == ["ALLOW", "NO_NEW_JOBS"]


def _tried_once(ring: Ring) -> None:
    """The first attempt has failed, near the end of the proposal's validity, and a job is on the group."""
    ring.do(held("npu1", "slurm:7"))
    ring.fault()
    ring.wait(3590)
    ring.poll_all(BROKEN)
    ring.do(held("npu1", None))
    ring.result(ActionState.FAILED, "the tool said so")
    ring.do(held("npu1", "slurm:8"))


def test_a_second_attempt_has_a_validity_of_its_own() -> None:
    ring = Ring()
    _tried_once(ring)
    ring.wait(3000)
    ring.poll_all(BROKEN)
    ring.do(held("npu1", None))
    assert len(ring.actions) == 2


def test_one_that_failed_and_could_not_be_tried_again_needs_a_person() -> None:
    ring = Ring()
    _tried_once(ring)
    ring.wait(60)
    ring.poll_all(BROKEN)
    ring.wait(3541)
    assert ring.emitted()[-1] == (
        "action_finished",
        "failed: it could not be done in time; npu1 is used by python (pid 7, job slurm:8)",
    )
    assert (ring.open_on("npu0"), ring.open_on("npu1")) == ([BROKEN, "reset_failed"], ["reset_failed"])
    assert ring.verdicts() == ["ISOLATE", "ISOLATE"]


def test_one_that_failed_and_is_withdrawn_needs_a_person() -> None:
    ring = Ring()
    _tried_once(ring)
    ring.do(order("isolate", "npu1"))
    assert ring.emitted()[-1] == ("action_finished", "failed: npu1 is isolated by uid:1000: bench")
    assert ring.open_on("npu1") == ["reset_failed"]


def test_one_that_failed_is_nobodys_trouble_once_its_fault_is_gone() -> None:
    ring = Ring()
    _tried_once(ring)
    ring.recover()
    assert ring.emitted()[-1] == ("action_finished", "refused: the fault is gone")
    assert ring.verdicts() == ["ALLOW", "ALLOW"]


def test_a_chip_that_a_person_had_reset_in_vain_is_not_given_back() -> None:
    ring = Ring()
    ring.do(order("reset", "npu0"))
    ring.wait(20)
    ring.poll_all()
    ring.wait(10.001)
    ring.result(ActionState.TIMED_OUT, "npu1 has not started")
    ring.do(held("npu1", "slurm:8"))
    ring.wait(3631)
    assert ring.verdicts() == ["ISOLATE", "ISOLATE"]


def test_a_result_that_comes_late_is_not_taken_for_the_second_attempts() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.wait(600)
    ring.poll_all(BROKEN)
    ring.wait(31)
    ring.poll_all(BROKEN)
    first, second = ring.actions
    ring.do(ActionResult(action_id=first.id, attempt=first.attempt, state=ActionState.TIMED_OUT))
    assert ring.stages() == [ResetStage.RUNNING]
    ring.do(ActionResult(action_id=second.id, attempt=second.attempt, state=ActionState.DONE))
    assert ring.stages() == [ResetStage.VERIFYING]


def test_one_that_was_refused_when_it_was_to_begin_does_not_count() -> None:
    ring = Ring(ring_catalog(limit=1, node_limit=1))
    ring.do(order("reset", "npu0"))
    ring.wait(20)
    ring.poll_all()
    ring.wait(10.001)
    ring.result(ActionState.REFUSED, "gpu0 is open in dcgm-exporter")
    assert ring.emitted()[-1] == ("action_finished", "refused: gpu0 is open in dcgm-exporter")
    ring.propose_and_start()
    assert len(ring.actions) == 2


def _stays() -> Ring:
    """Under tables by which one code is over only by a reset."""
    base = ring_catalog()
    stays = row("STAYS", Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True))
    return Ring(replace(base, digest="stays", rows={**base.rows, "STAYS": stays}))


@pytest.mark.parametrize("begins_again", [False, True])
def test_a_fault_that_only_a_reset_clears_asks_for_none_once_its_driver_says_that_it_has_gone(
    begins_again: bool,
) -> None:
    ring = _stays()
    ring.fault("STAYS")
    if begins_again:
        ring.restart()
        ring.nobody_holds()
    ring.wait(1)
    ring.recover("STAYS")
    ring.wait(20)
    ring.poll_all()
    ring.wait(10.001)
    assert ring.emitted()[-1][1] == "it waits: no fault that asked for it is seen now"
    assert ring.open_on("npu0") == ["STAYS"]


def test_a_fault_that_only_a_reset_clears_is_over_by_one_though_the_polls_say_first_that_it_has_gone() -> (
    None
):
    ring = _stays()
    ring.propose_and_start("STAYS")
    ring.help()
    assert ring.emitted()[-1] == ("action_finished", "done: verified by a poll of every member")
    assert ring.open_on("npu0") == []
    assert ring.verdicts() == ["ALLOW", "ALLOW"]
