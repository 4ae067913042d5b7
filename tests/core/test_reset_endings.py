"""What a reset leaves behind however it ends: which faults are over, and who needs a person."""

from nodeagent.core.model import ActionState, Level
from tests.core.ring import BROKEN, Ring

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
    assert ring.told()[-1] == ("action_finished", "done: verified by a poll of every member")
    assert ring.open_on("npu0") == []
    assert ring.open_on("npu1") == [OTHER]
    assert ring.verdicts() == ["ALLOW", "NO_NEW_JOBS"]
