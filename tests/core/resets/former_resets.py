"""Histories that end a reset, and what comes after each.

``fixtures/stores/ended-resets.json`` holds the ends as an earlier version stored them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from nodeagent.core.model import ActionState, Operator
from tests.core.build import held, order
from tests.core.resets.ring import BROKEN, Ring


def _in_vain(ring: Ring) -> None:
    ring.do(held("npu1", "slurm:7"))
    ring.propose_and_start()
    ring.wait(3600)


def _withdrawn(ring: Ring) -> None:
    ring.fault()
    ring.do(order("isolate", "npu1"))


def _refused_by_a_person(ring: Ring) -> None:
    ring.do(held("npu1", "slurm:7"))
    ring.propose_and_start()
    ring.do(order("refuse", "die0/reset#1"))


def _failed_twice(ring: Ring) -> None:
    ring.propose_and_start()
    for _ in range(2):
        ring.result(ActionState.TIMED_OUT, "npu1 has not started")
        ring.wait(20)
        ring.poll_all(BROKEN)
        ring.wait(11)


def _verified(ring: Ring) -> None:
    ring.propose_and_start()
    ring.help()


ENDED: Final[Mapping[str, Callable[[Ring], None]]] = {
    "in vain": _in_vain,
    "withdrawn": _withdrawn,
    "refused by a person": _refused_by_a_person,
    "failed twice": _failed_twice,
    "verified": _verified,
}


def goes_on(ring: Ring) -> None:
    """Whatever stood in its way leaves, the fault is shown once more, and the cool-down passes."""
    ring.do(held("npu1", None))
    ring.do(order("release", "npu1"))
    ring.do(Operator(who="uid:1", what="release", device="npu1", force=True))
    ring.fault()
    ring.poll_all(BROKEN)
    ring.wait(31)
    ring.poll_all(BROKEN)
    ring.wait(31)
