"""What a reset waits for is told once it is known: not once for each chip that is observed again."""

from collections.abc import Callable

import pytest

from nodeagent.core.model import ActionState, Claims, Loss, ProcessesListed
from tests.core.build import back, held, lost, order
from tests.core.resets.ring import BROKEN, Ring

CHIPS = 5
CLAIMED = "it waits: npu0 is claimed by the job slurm:7"
AWAY = "ascend: no answer"


def waiting() -> Ring:
    """One that waits for a job to leave; who is on its five chips is known."""
    ring = Ring(chips=CHIPS)
    ring.do(Claims(device="npu0", job="slurm:7", kind="", claimed=True))
    ring.propose_and_start()
    assert ring.emitted()[-1] == ("action_proposed", CLAIMED)
    return ring


def told(ring: Ring, after: int) -> list[str]:
    return [why for _, why in ring.emitted()[after:]]


def come_back_one_by_one(ring: Ring) -> None:
    for name in ring.names:
        ring.wait(0.005)
        ring.poll(*([BROKEN] if name == "npu0" else []), device=name)
        ring.do(held(name, None))
    ring.do(back())


def quiesced(ring: Ring) -> None:
    ring.do(order("quiesce", "node"))
    ring.do(lost(how=Loss.RELEASED))
    ring.wait(60)
    ring.do(order("resume", "node"))
    come_back_one_by_one(ring)


def restarted(ring: Ring) -> None:
    ring.pass_unheard(5)
    ring.restart()
    come_back_one_by_one(ring)


def away_for_a_moment(ring: Ring) -> None:
    ring.do(lost())
    ring.wait(3)
    come_back_one_by_one(ring)


@pytest.mark.parametrize(
    ("happens", "says"),
    [
        (quiesced, [f"{CLAIMED}; quiesced by uid:1000: bench", CLAIMED]),
        (restarted, []),
        (away_for_a_moment, []),
    ],
)
def test_chips_that_come_back_one_after_the_other_are_told_of_together(
    happens: Callable[[Ring], None], says: list[str]
) -> None:
    ring = waiting()
    before = len(ring.emitted())
    happens(ring)
    ring.wait(60)
    assert told(ring, before) == says


def test_what_has_come_in_the_way_meanwhile_is_told_when_all_are_known() -> None:
    ring = waiting()
    before = len(ring.emitted())
    ring.do(lost())
    ring.do(Claims(device="npu3", job="slurm:8", kind="", claimed=True))
    assert told(ring, before) == []
    come_back_one_by_one(ring)
    assert told(ring, before) == [f"{CLAIMED}; npu3 is claimed by the job slurm:8"]


def test_chips_that_stay_away_are_told_of_once_and_so_is_their_return() -> None:
    ring = waiting()
    before = len(ring.emitted())
    ring.do(lost())
    ring.wait(10)
    assert told(ring, before) == [
        f"{CLAIMED}; {'; '.join(f'npu{each} is not observed: {AWAY}' for each in range(CHIPS))}"
    ]
    ring.wait(600)
    come_back_one_by_one(ring)
    assert told(ring, before)[1:] == [CLAIMED]


def test_the_state_shows_at_once_what_is_in_the_way() -> None:
    ring = waiting()
    ring.do(lost())
    (reset,) = ring.engine.view().resets
    assert reset.hindered[1] == f"npu0 is not observed: {AWAY}"


def test_who_is_on_a_chip_that_cannot_be_asked_is_told_after_a_while() -> None:
    ring = waiting()
    before = len(ring.emitted())
    ring.do(ProcessesListed(device="npu4", holders=(), known=False))
    ring.wait(9)
    assert told(ring, before) == []
    ring.wait(1)
    assert told(ring, before) == [f"{CLAIMED}; the users of npu4 are not known"]


def test_a_second_attempt_tells_anew_what_it_waits_for() -> None:
    ring = waiting()
    ring.do(Claims(device="npu0", job="slurm:7", kind="", claimed=False))
    ring.result(ActionState.FAILED, "no")
    ring.do(Claims(device="npu0", job="slurm:7", kind="", claimed=True))
    ring.wait(31)
    ring.poll_all(BROKEN)
    assert ring.emitted()[-1][1] == CLAIMED
