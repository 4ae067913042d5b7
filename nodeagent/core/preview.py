"""What other tables would make of what is open now: two views compared. It judges nothing itself."""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.core.model import Condition, DeviceView, Handling, Level, Promotion, Verdict, View


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """How the level of an open condition, or of a promotion in force, would change. ``after`` None: it would
    end.
    """

    id: str
    device: str
    code: str
    before: Level
    after: Level | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StanceChange:
    """How a device's verdict and handling would change."""

    device: str
    before: tuple[Verdict, Handling]
    after: tuple[Verdict, Handling]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    levels: tuple[LevelChange, ...] = ()
    devices: tuple[StanceChange, ...] = ()


def compare(before: View, after: View) -> Preview:
    """Every level, verdict and handling that differs, in the order of ``before``."""
    names = {device.id: device.name for device in before.devices}
    levels = {fault.id: fault.level for fault in _faults(after)}
    stances = {device.id: _stance(device) for device in after.devices}
    return Preview(
        levels=tuple(
            LevelChange(
                id=fault.id,
                device=names.get(fault.device_id, fault.device_id),
                code=fault.code,
                before=fault.level,
                after=levels.get(fault.id),
            )
            for fault in _faults(before)
            if levels.get(fault.id) is not fault.level
        ),
        devices=tuple(
            StanceChange(device=device.name, before=_stance(device), after=stances[device.id])
            for device in before.devices
            if stances[device.id] != _stance(device)
        ),
    )


def _faults(view: View) -> Iterable[Condition | Promotion]:
    yield from view.conditions
    yield from (promotion for promotion in view.promotions if promotion.effective)


def _stance(device: DeviceView) -> tuple[Verdict, Handling]:
    return device.verdict, device.handling
