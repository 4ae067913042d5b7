"""Which of the published devices a caller means. It guesses nothing: a name, an id, or a refusal."""

from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import DeviceView
from nodeagent.store.records import Publication

_MOST_NAMED = 20


def known_device(current: Publication, wanted: str) -> DeviceView:
    """Raises Refusal, naming the devices there are."""
    for device in current.view.devices:
        if wanted in (device.name, device.id):
            return device
    there = ", ".join(device.name for device in current.view.devices[:_MOST_NAMED]) or "none yet"
    raise Refusal(Status.NOT_FOUND, f"device: {wanted!r} is not known; there are: {there}")
