"""Which devices a source lists, over the lives of its workers and of the daemon: which vanished, which the
configuration excludes, and whether there are as many chips as it expects. Pure.

A device is known by its identity: where one vanishes, the names of others may move up to its own. A slot with
a device that was not known before, or one without an identity, is no evidence about the earlier device.

Chips are counted, not judged: a chip that is listed and does not answer, or that its driver has lost, has a
fault of its own. Chips that start are listed late, so the table decides how long there may be too few. The
fault is reported as the source's own: no time-out runs while the source is lost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from nodeagent.core.model import NODE, Assertion, DeviceGone, Kind, Signal, View
from nodeagent.core.model.traits import EXCLUDED, NO_RESET
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


WHY: Final = "excluded by agent.exclude_devices"


def marked(devices: Iterable[Device], patterns: Sequence[str]) -> list[Device]:
    """The same devices. Those that a pattern names, whole or by their PCI address, say why they are let
    alone.
    """
    return [_marked(device, patterns) for device in devices]


def _marked(device: Device, patterns: Sequence[str]) -> Device:
    names = {device.device, device.attributes.get("pci", device.device)}
    if not any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
        return device
    return replace(device, attributes={**device.attributes, EXCLUDED: WHY, NO_RESET: WHY})


FEWER: Final = "fewer_chips_than_expected"
MORE: Final = "more_chips_than_expected"
"""Both are codes of the node, with the name of the source behind them."""

MAX_NAMED: Final = 16


class ExpectedChips:
    """How many chips one source should have. ``number`` 0: any; None: none, and nothing is reported."""

    def __init__(self, source: str, number: int | None) -> None:
        self.number = number
        self.listed = 0
        self._source = source
        self._reported: dict[str, str] = {}

    def counted(self, devices: Iterable[Device], missing: Collection[str] = ()) -> list[Signal]:
        """What follows from a whole list. ``missing`` are the slots that are known to lack a chip."""
        self.listed = sum(device.kind is Kind.CHIP for device in devices)
        if not self.number or self.listed == self.number:
            return self.never_mind()
        reason = f"{self.listed} listed, drivers.{self._source}.expected_chips is {self.number}"
        if self.listed > self.number:
            return [*self._report(FEWER, ""), *self._report(MORE, reason)]
        if missing:
            reason += f"; missing: {', '.join(sorted(missing)[:MAX_NAMED])}"
        return [*self._report(MORE, ""), *self._report(FEWER, reason)]

    def never_mind(self) -> list[Signal]:
        """There are neither more nor fewer than expected, or that does not matter now."""
        return [*self._report(FEWER, ""), *self._report(MORE, "")]

    def _report(self, code: str, reason: str) -> list[Signal]:
        """Where it is news. The first time also that all is well: an earlier life may have said otherwise."""
        if self.number is None or self._reported.get(code) == reason:
            return []
        self._reported[code] = reason
        return [
            Signal(
                source=self._source,
                device=NODE,
                code=f"{code}.{self._source}",
                assertion=Assertion.OCCUR if reason else Assertion.RECOVER,
                evidence={"reason": reason} if reason else {},
            )
        ]
