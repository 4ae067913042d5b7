"""A fault whose reset waited in vain: it asks again once nothing stands in the way, if it is still seen."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import ActionState, Claims, EventKind, Level, Operator, ResetMode
from tests.core.build import back, held, lost, order, row, signal
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

XID = "XID_79"
PROPOSED = ("action_proposed", "reset of npu0, npu1 for RestartNPU")


def _refused_in_vain(mode: ResetMode = ResetMode.ON) -> Ring:
    """A job kept the group for longer than a proposal is valid."""
    ring = Ring(ring_catalog(mode))
    ring.do(held("npu1", "slurm:7"))
    ring.propose_and_start()
    ring.wait(3600)
    assert ring.emitted()[-1][1].startswith("refused: it could not be done in time; npu1 is used by ")
    return ring


def test_a_fault_is_reset_away_when_the_job_leaves_however_long_it_stayed() -> None:
    ring = _refused_in_vain()
    ring.wait(8 * 3600)
    ring.poll_all(BROKEN)
    assert len(ring.emitted(EventKind.ACTION_PROPOSED)) == 2
    ring.do(held("npu1", None))
    assert ring.emitted()[-1] == PROPOSED
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.wait(10.001)
    ring.help()
    assert ring.emitted()[-1] == ("action_finished", "done: verified by a poll of every member")
    assert ring.verdicts() == ["ALLOW", "ALLOW"]


def test_a_fault_is_reset_away_after_a_long_quiesce() -> None:
    ring = Ring()
    ring.do(order("quiesce", "node"))
    ring.do(lost())
    ring.do(back())
    ring.propose_and_start()
    ring.do(lost())
    ring.wait(3600)
    ring.do(Operator(who="uid:1000", what="resume", device="node", reason="done"))
    assert ring.emitted()[-1][0] == "action_finished"
    ring.do(back())
    ring.nobody_holds()
    ring.poll_all(BROKEN)
    assert ring.emitted()[-1] == PROPOSED


def test_a_fault_that_nobody_sees_any_more_does_not_ask_again() -> None:
    base = ring_catalog()
    once = row(XID, Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True))
    ring = Ring(type(base)(digest="xid", rows={**base.rows, XID: once}, settings=base.settings))
    ring.do(held("npu1", "slurm:7"))
    ring.do(signal(XID, "once"))
    ring.wait(3631)
    ring.do(held("npu1", None))
    assert ring.emitted()[-1][0] == "action_finished"
    ring.do(signal(XID, "once"))
    assert ring.emitted()[-1] == ("action_finished", "refused: it could not be done in time; " + HELD)


HELD = "npu1 is used by python (pid 7, job slurm:7); no poll has shown the fault since it was proposed"


def test_what_a_person_refused_is_not_asked_again() -> None:
    ring = Ring()
    ring.do(held("npu1", "slurm:7"))
    ring.propose_and_start()
    ring.do(order("refuse", "die0/reset#1"))
    ring.do(held("npu1", None))
    ring.poll_all(BROKEN)
    assert ring.emitted()[-1] == ("action_finished", "refused: refused by uid:1000: bench")


def test_however_often_it_waits_in_vain_one_such_end_is_kept() -> None:
    ring = _refused_in_vain()
    for _ in range(5):
        ring.do(held("npu1", None))
        ring.do(held("npu1", "slurm:7"))
        ring.wait(31)
        ring.poll_all(BROKEN)
        ring.wait(3600)
    assert len(ring.emitted(EventKind.ACTION_FINISHED)) == 6
    assert len(ring.stages()) == 1


def test_on_paper_it_asks_again_as_it_would_in_earnest() -> None:
    dry, wet = _refused_in_vain(ResetMode.DRY_RUN), _refused_in_vain()
    for ring in (dry, wet):
        ring.do(held("npu1", None))
        ring.wait(20)
        ring.poll_all(BROKEN)
        ring.wait(10.001)
    assert dry.emitted()[:-1] == wet.emitted()


def test_a_reset_that_was_called_off_for_a_job_is_asked_for_again_when_that_has_left() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.do(Claims(device="npu1", job="slurm:9", kind="", claimed=True))
    ring.result(ActionState.REFUSED, "it was called off: npu1 is claimed by the job slurm:9")
    assert ring.emitted()[-1][1] == "refused: it was called off: npu1 is claimed by the job slurm:9"
    ring.do(Claims(device="npu1", job="slurm:9", kind="", claimed=False))
    assert ring.emitted()[-1] == PROPOSED


def test_a_reset_that_was_called_off_for_a_person_is_asked_for_again_when_that_is_over() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.do(order("isolate", "npu1"))
    ring.result(ActionState.REFUSED, "it was called off: isolated by uid:1000: bench")
    ring.do(order("release", "npu1"))
    assert ring.emitted()[-1] == PROPOSED


def test_what_the_vendors_tool_will_not_reset_is_not_asked_again() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.result(ActionState.REFUSED, "npu0 is open in a monitor")
    ring.do(Claims(device="npu1", job="slurm:9", kind="", claimed=True))
    ring.do(Claims(device="npu1", job="slurm:9", kind="", claimed=False))
    ring.poll_all(BROKEN)
    assert ring.emitted()[-1] == ("action_finished", "refused: npu0 is open in a monitor")


def test_a_second_attempt_that_is_refused_leaves_its_group_to_a_person() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.result(ActionState.TIMED_OUT, "npu1 has not started")
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.wait(11)
    ring.result(ActionState.REFUSED, "npu1 is open in a monitor")
    assert ring.emitted()[-1] == ("action_finished", "failed: npu1 is open in a monitor")
    assert ring.open_on("npu1") == ["reset_failed"]
