"""What was named on the command line and is unknown: said so, in place of an answer that is empty."""

from collections.abc import Collection, Iterable

from nodeagent.client import Client
from nodeagent.messages.pb import fault_service_pb2 as pb

_MOST_NAMED = 20
_MOST_NEAR = 3
_FAMILY = "*"


def unknown_devices(daemon: Client, wanted: Collection[str]) -> list[str]:
    """A sentence for each name or id that no device has."""
    if not wanted:
        return []
    devices = daemon.call(pb.ListDevicesRequest()).devices
    known = {name for device in devices for name in (device.name, device.id)}
    there = ", ".join(device.name for device in devices[:_MOST_NAMED]) or "none yet"
    more = f" and {len(devices) - _MOST_NAMED} more" if len(devices) > _MOST_NAMED else ""
    return [f"device {each!r} is not known; there are: {there}{more}" for each in wanted if each not in known]


def unknown_codes(daemon: Client, wanted: Iterable[str]) -> list[str]:
    """A sentence for each code that is in no table; of a family (XID_*) that is unknown."""
    codes = [each for each in wanted if not each.endswith(_FAMILY)]
    if not codes:
        return []
    explanations = daemon.call(pb.ExplainCodeRequest(codes=codes)).explanations
    return [f"code {each.code!r} is in no table{_near(each)}" for each in explanations if not each.known]


def _near(unknown: pb.CodeExplanation) -> str:
    """At most a few: the same number may begin many codes."""
    near = [*unknown.same_number, *unknown.nearest][:_MOST_NEAR]
    return f"; the nearest: {', '.join(near)}" if near else ""
