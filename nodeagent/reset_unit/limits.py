"""How often devices may be reset, by the record of what was done. Pure."""

from collections.abc import Iterable, Sequence

from nodeagent.config.reset import ResetConfig
from nodeagent.reset_unit.exchange.record import PastReset
from nodeagent.reset_unit.exchange.request import Device


def exceeded(devices: Iterable[Device], past: Sequence[PastReset], limits: ResetConfig) -> str:
    """What forbids one more reset of these now, "" if nothing."""
    counted = [each for each in past if each.ago_ns <= limits.limit_window_ns]
    hours = limits.limit_window_ns / 3.6e12
    for device in devices:
        times = sum(1 for each in counted if _had(each, device))
        if times >= limits.limit:
            return f"{device.name} had {_resets(times)} within {hours:g} h, by their record"
    if len(counted) >= limits.node_limit:
        return f"this node had {_resets(len(counted))} within {hours:g} h, by their record"
    last_ns = min((each.ago_ns for each in past), default=limits.cool_down_ns)
    if last_ns < limits.cool_down_ns:
        cool_down_s = limits.cool_down_ns / 1e9
        return f"the last reset was {last_ns / 1e9:.0f} s ago, and reset.cool_down is {cool_down_s:g} s"
    return ""


def _resets(number: int) -> str:
    return "1 reset" if number == 1 else f"{number} resets"


def _had(reset: PastReset, device: Device) -> bool:
    """One of devices that nobody knows may have been of any."""
    return not reset.devices or any(_is_same(each, device) for each in reset.devices)


def _is_same(one: Device, other: Device) -> bool:
    """Whether they are the same: by their ids where both were read, else by their places."""
    if one.identity and other.identity:
        return one.identity == other.identity
    return one.pci == other.pci if one.pci and other.pci else one.name == other.name
