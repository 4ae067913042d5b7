"""What the verdicts of a node say to NVRx, which asks before the workers of a job start. Values only.

NVRx takes a node that fails out of the job. So what is not known does not fail: a driver that does not answer
must not empty a cluster. What concerns no work by itself, such as a port, has changed the verdict of the
chips behind it, or of the node, where it matters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeagent.core.model import NODE, DeviceView, Kind, Verdict

_FAILS: Final = (Verdict.ISOLATE, Verdict.NO_NEW_JOBS)
_WORKS: Final = (Kind.CHIP, Kind.INSTANCE)
"""Kinds of devices that work is placed on, besides the node itself."""


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """Each text names a device: ``npu3 80E18005 ISOLATE``."""

    failed: tuple[str, ...]
    unknown: tuple[str, ...]


def health(devices: Iterable[DeviceView]) -> NodeHealth:
    """The health of the node and of all that work is placed on."""
    judged = [each for each in devices if each.kind in _WORKS or each.name == NODE]
    return NodeHealth(
        failed=tuple(_said(each) for each in judged if each.verdict in _FAILS),
        unknown=tuple(_said(each) for each in judged if each.verdict is Verdict.UNKNOWN),
    )


def _said(device: DeviceView) -> str:
    """Codes; of a hold, which has none, the kind of reason: a person's words are not shown here."""
    codes = [reason.code for reason in device.reasons if reason.code]
    why = dict.fromkeys(codes or [reason.kind for reason in device.reasons])
    return " ".join(filter(None, (device.name, ",".join(why), device.verdict)))
