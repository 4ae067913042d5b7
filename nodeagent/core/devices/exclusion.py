"""Devices that the configuration excludes: they are listed, and nothing that is reported of them is taken.

Who lists devices marks them (``EXCLUDED`` says why). What was open on one closes once it is excluded.
Isolations are a person's, so they stay.
"""

from nodeagent.core.faults import closing
from nodeagent.core.model import Condition, Device, Promotion
from nodeagent.core.rules import promotions
from nodeagent.core.state.queries import EXCLUDED
from nodeagent.core.state.state import State


def begin(state: State, device: Device) -> None:
    """From now on it is excluded."""
    why = device.attributes[EXCLUDED]
    for each in (device, *state.parts(device.id)):
        for condition in state.on(Condition, each.id):
            closing.close(state, condition, why)
        for promotion in state.on(Promotion, each.id):
            promotions.release(state, promotion, why)
