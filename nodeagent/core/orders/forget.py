"""A person's order to forget a part that was taken out for good.

Nothing else forgets one that a driver has read: it stays UNKNOWN, also over a reboot, for nobody but a person
knows that it is not to come back. If it does, it is a new device; how often it was reset is kept.
"""

from nodeagent.core.devices import forget as forgetting
from nodeagent.core.devices import registry
from nodeagent.core.model import Claimed, Device, HoldKind, Operator
from nodeagent.core.orders import answers, holds
from nodeagent.core.orders.answers import Answered
from nodeagent.core.resets import blockers
from nodeagent.core.state.queries import PART_OF
from nodeagent.core.state.state import State


def forget(state: State, given: Operator) -> Answered:
    device = registry.find(state, given.device)
    if device is None:
        return answers.unknown_device(given.device)
    if why := _refusal(state, device, given):
        return answers.not_possible(why)
    forgetting.forget_by_order(state, device, holds.said_by(given))
    return answers.accepted(device.id)


def _refusal(state: State, device: Device, given: Operator) -> str:
    """Why it is not forgotten, and what to do; "" where it is."""
    if device.id == state.node_id:
        return "the node itself cannot be forgotten"
    if (chip := device.attributes.get(PART_OF)) is not None:
        return f"{device.name} is a part of {state.device(chip).name} and is forgotten with it"
    if device.source and not device.gone:
        return f"the driver {device.source} lists {device.name}; take the part out first"
    if blockers.is_in_its_slot(state, device):
        return f"{device.name} is still in its slot, as device_lost says; take the part out first"
    if (reset := blockers.covering(state, [device.id])) is not None:
        return f"{reset.id} of {blockers.names(state, reset.members)} is in progress ({reset.stage})"
    if given.force:
        return ""
    if (claimed := state.get(Claimed, device.id)) is not None:
        jobs = ", ".join(job for job, _ in claimed.jobs)
        return f"{device.name} is claimed by {jobs}; release the claim, or use --force"
    isolations = holds.of_kind(state, device, HoldKind.ISOLATION)
    others = [hold for hold in isolations if hold.owner not in (given.owner, given.who)]
    return holds.not_yours(f"{device.name} is isolated", given, others) if others else ""
