"""Baselines: what a driver has seen of a part while it was well, kept for the workers that come after it.

The core keeps it by the part, so that it outlives workers, daemons and boots, and goes with the part. It
reads nothing of it: what a change means is the driver's to say.
"""

from nodeagent.core.devices import registry
from nodeagent.core.model import Baseline, BaselineSeen, Device, EventKind, Operator
from nodeagent.core.orders import answers, holds
from nodeagent.core.orders.answers import Answered
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit


def seen(state: State, given: BaselineSeen) -> bool:
    """Keep it, unless an order to begin anew was given since, or nobody lists such a part."""
    if not given.content or state.get(Device, given.identity) is None:
        return False
    before = state.get(Baseline, given.identity)
    after = Baseline(
        device_id=given.identity, source=given.source, number=given.number, content=given.content
    )
    if after == before or (before is not None and before.number != given.number):
        return False
    state.put(after)
    return True


def begin_anew(state: State, given: Operator) -> Answered:
    """A person's order: what the driver sees of the part from now on is right."""
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    if device.gone or not device.source:
        return answers.not_possible(f"no driver lists {device.name}; wait until one does")
    before = state.get(Baseline, device.id)
    if before is None:
        return answers.not_possible(f"the driver {device.source} remembers nothing of {device.name}")
    state.put(Baseline(device_id=device.id, source=before.source, number=before.number + 1))
    why = f"what it is now is right, says {holds.said_by(given)}"
    emit(state, EventKind.NOTICE, device, source=before.source, why=why)
    return answers.accepted(device.id)
