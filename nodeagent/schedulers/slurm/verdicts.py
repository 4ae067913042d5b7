"""Whether this node may take new work, from the verdicts of its chips and of itself, and the reason for a
drain. Pure.

Other devices do not count: what they do to the node is in the node's own verdict.

``sinfo -R`` shows 20 characters of a reason (sinfo.c, the default format ``%20E %9u %19H %N``), so the code
and the device come first and our mark last. A reason of any other form is another's, also where a person
quotes ours.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nodeagent.client import Device
from nodeagent.core.model import Verdict, decides

_SHUT: Final = (Verdict.NO_NEW_JOBS, Verdict.ISOLATE)
"""From the milder."""


class Standing(StrEnum):
    """``bad``: it must take no new work. ``unknown``: its state is not known, and nothing is done."""

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


_OWN: Final = re.compile(r"[A-Za-z0-9_./:-]+ [A-Za-z0-9_./:-]+(?: \+\d+)? \(nodeagent #\d+\)")
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_./:-]+")
_MOST_CHARACTERS: Final = 64


def reason(code: str, device: str, others: int, seq: int) -> str:
    """``80E18005 npu3 (nodeagent #4711)``. ``others`` devices take no new work either."""
    more = (f"+{others}",) if others else ()
    return " ".join((_word(code), _word(device), *more, f"(nodeagent #{seq})"))


def is_own(text: str) -> bool:
    return _OWN.fullmatch(text) is not None


def _word(text: str) -> str:
    """Without what could end it, for Slurm or for a script that reads ``sinfo``."""
    return _NO_WORD.sub("_", text)[:_MOST_CHARACTERS] or "unknown"
