"""Which parts a source has listed, over the lives of its workers and the daemon's, and which vanished. Pure.

A part is known by its identity: where one vanishes, the names of others may move up to its own. A slot
that holds a part which nobody knew, or one that does not say which it is, says nothing about the old one.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from nodeagent.core.model import DeviceGone, View
from nodeagent.core.state.registry import identity_of
from nodeagent.wire import Device

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def devices_of(view: View, source: str) -> tuple[Device, ...]:
    """The devices that the source has read, in this life or an earlier one, as its worker would list them."""
    return tuple(
        Device(
            device=known.name,
            kind=known.kind,
            vendor=known.vendor,
            identity=identity_of(known.id),
            attributes=dict(known.attributes),
        )
        for known in view.devices
        if known.source == source
    )


class Inventory:
    """``known`` are those of before the first list."""

    def __init__(self, source: str, known: Sequence[Device]) -> None:
        self._source = source
        self._listed: Collection[Device] = known

    @property
    def any(self) -> bool:
        """Whether one was ever listed and has not vanished since."""
        return bool(self._listed)

    def vanished(
        self,
        now: Collection[Device],
        *,
        missing: Mapping[str, str] = _NOTHING,
        spared: Collection[str] = (),
        reason: str = "the driver no longer lists it",
    ) -> list[DeviceGone]:
        """Those listed before and not ``now``, by the names they had; to be reported before what is listed.

        ``missing`` gives the reason of some, by name or slot. Nothing is reported yet of those in ``spared``.
        """
        here = _places(now, {device.identity for device in self._listed if device.identity})
        unlisted = [
            device
            for device in self._listed
            if here.isdisjoint({device.identity or _slot(device), _slot(device), device.device})
        ]
        self._listed = (*now, *(device for device in unlisted if device.device in spared))
        return [
            DeviceGone(
                source=self._source,
                device=device.device,
                reason=missing.get(device.device) or missing.get(_slot(device)) or reason,
            )
            for device in unlisted
            if device.device not in spared
        ]


def _places(now: Collection[Device], known: Collection[str]) -> set[str]:
    """The identities that are listed, and where parts of before may still be."""
    here = {device.identity for device in now}
    for device in now:
        if device.identity not in known:
            here.add(_slot(device))
        if not device.identity:
            here.add(device.device)
    return here


def _slot(device: Device) -> str:
    """Where it sits; its name, where that is not known."""
    return device.attributes.get("pci") or device.device
