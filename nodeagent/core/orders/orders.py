"""A person's orders, by their verb, and the answer to each. Each verb's meaning is elsewhere."""

from collections.abc import Callable
from typing import Final

from nodeagent.core.devices import baselines, registry
from nodeagent.core.model import Operator
from nodeagent.core.orders import answers, forget, holds, jobs, release
from nodeagent.core.orders.answers import Answered
from nodeagent.core.resets import approval, proposals, refusal
from nodeagent.core.state.state import State


def ordered(state: State, given: Operator) -> Answered:
    verb = _VERBS.get(given.what)
    return answers.unknown(f"{given.what!r} is no order") if verb is None else verb(state, given)


def _reset(state: State, given: Operator) -> Answered:
    """A person asks for it: the same steps, without a fault."""
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    why, setting = refusal.of_order(state, device, given.once)
    if why:
        return answers.not_possible(why, setting)
    return answers.accepted(proposals.ordered(state, device, given).id)


_VERBS: Final[dict[str, Callable[[State, Operator], Answered]]] = {
    "isolate": holds.isolate,
    "release": release.release,
    "forget": forget.forget,
    "rebaseline": baselines.begin_anew,
    "approve": approval.approve,
    "refuse": approval.refuse,
    "reset": _reset,
    "quiesce": holds.quiesce,
    "resume": holds.resume,
    "stop_job": jobs.stop,
    "rerun_job": jobs.rerun,
}
