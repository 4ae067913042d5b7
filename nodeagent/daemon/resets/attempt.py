"""One attempt of a reset, as the parts that have it done hand it on. It does nothing."""

from dataclasses import dataclass

from nodeagent.core.model import DeviceView, HoldKind, Reset, View
from nodeagent.reset_unit.exchange.requests import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The ``number``-th of an action, by its file's ``name``. ``devices`` as they were: the asker first.
    ``once``: an operator ordered it where the mode has none done.
    """

    action: str
    number: int
    name: str
    vendor: str
    devices: tuple[DeviceView, ...]
    once: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its devices."""
        return tuple(device.name for device in self.devices)


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
        once=reset.once,
    )


def came_meanwhile(attempt: Attempt, view: View) -> str:
    """What would have kept it from beginning, had it been there by then; "" if nothing."""
    claims = {device.id: device.claims for device in attempt.devices}
    for device in view.devices:
        for claim in device.claims if device.id in claims else ():
            if claim not in claims[device.id]:
                job, kind = claim
                return f"{device.name} is claimed by the {kind or 'job'} {job}"
    for hold in view.holds:
        if hold.kind is HoldKind.QUIESCE:
            return f"quiesced by {hold.owner}: {hold.reason}"
        if hold.kind is HoldKind.ISOLATION and hold.device_id in claims:
            return f"isolated by {hold.owner}: {hold.reason}"
    return ""
