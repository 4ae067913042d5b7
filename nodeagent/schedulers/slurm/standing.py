"""May the node take new work, in one word, from the verdicts of its chips and of itself. Pure.

Other devices count for nothing: what they do to the node is in the node's own verdict.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nodeagent.client import Device
from nodeagent.core.model import Verdict, decides

_SHUT: Final = (Verdict.NO_NEW_JOBS, Verdict.ISOLATE)
"""From the milder."""


class Standing(StrEnum):
    """``bad``: it is to take no new work. ``unknown``: nobody can tell, and nothing is done."""

    BAD = "bad"
    UNKNOWN = "unknown"
    WELL = "well"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """``device`` is the first of those that are why it is bad, ``code`` its fault or the kind of what holds
    it, ``others`` how many more there are.
    """

    standing: Standing
    code: str = ""
    device: str = ""
    others: int = 0


def judge(devices: Iterable[Device]) -> Verdicts:
    """The standing of the node, from all its devices. A node of which nothing is said is unknown."""
    counted = [each for each in devices if decides(each.kind, each.name)]
    shut = [each for each in counted if each.verdict in _SHUT]
    if shut:
        worst = max(shut, key=lambda each: _SHUT.index(each.verdict))  # the first of equals
        return Verdicts(standing=Standing.BAD, code=_code(worst), device=worst.name, others=len(shut) - 1)
    is_well = bool(counted) and all(each.verdict is Verdict.ALLOW for each in counted)
    return Verdicts(standing=Standing.WELL if is_well else Standing.UNKNOWN)


def _code(device: Device) -> str:
    """The code of its first reason that has one; else what keeps work away, such as a hold."""
    codes = (each.code for each in device.reasons if each.code)
    kinds = (each.kind for each in device.reasons if each.kind)
    return next(codes, "") or next(kinds, "") or str(device.verdict)
