"""One attempt of a reset, as the parts that have it done hand it on. It does nothing."""

from dataclasses import dataclass

from nodeagent.core.model import DeviceView, Reset, View
from nodeagent.reset.folder import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The ``number``-th of an action, by its file's ``name``. ``devices``: the asker first."""

    action: str
    number: int
    name: str
    vendor: str
    devices: tuple[DeviceView, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of its devices."""
        return tuple(device.name for device in self.devices)

    @property
    def group(self) -> str:
        """What no two resets may be under way of."""
        asker = self.devices[0]
        return f"{asker.vendor} {asker.attributes.get('group') or asker.id}"


def attempt_of(view: View, reset: Reset) -> Attempt:
    """The one that it is at now."""
    by_id = {device.id: device for device in view.devices}
    devices = tuple(by_id[member] for member in reset.members if member in by_id)
    return Attempt(
        action=reset.id,
        number=reset.attempt,
        name=name_of(reset.id, reset.attempt),
        vendor=devices[0].vendor if devices else "",
        devices=devices,
    )
