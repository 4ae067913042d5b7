"""Whether this node may take new work, from the verdicts of its chips and of itself; the reason for a drain,
and the comment of the node. Pure.

Other devices do not count: what they do to the node is in the node's own verdict.

``sinfo -R`` shows 20 characters of a reason (sinfo.c, the default format ``%20E %9u %19H %N``): so our prefix
has three, and the code and the device follow at once. A reason of any other form is another's, also where a
person quotes ours. The comment has what the reason has no room for: each device that takes no new work.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nodeagent.client import Device, Reason
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.model import Level, Verdict, decides

_SHUT: Final = (Verdict.NO_NEW_JOBS, Verdict.ISOLATE)
"""From the milder."""

_ASKS_FOR_NOTHING: Final = PRECEDENCE[Level.SUB_HEALTH]
"""The strictest of the levels that keep no work away by themselves."""

_RESET_PENDING: Final = "nodeagent: reset pending: "
"""Begins the text of a hold for a reset: OWNER and ``reason`` of core/machines/reset_proposals.py."""


class Standing(StrEnum):
    """``bad``: it must take no new work. ``unknown``: its state is not known, and nothing is done."""

    BAD = "bad"
    UNKNOWN = "unknown"
    WELL = "well"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainCause:
    """Why a device takes no new work: ``code`` is that of its worst fault, or the kind of what holds it.
    ``is_held``: only for a reset that another device needs. ``rank`` orders faults, the worst is the highest.
    ``seq`` is the number of the event that reports the fault, 0 where that is not known.
    """

    device: str
    code: str
    rank: tuple[int, int, int] = (0, 0, 0)
    is_held: bool = False
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """``faults`` are those of the devices that take no new work, the worst first; of equals the first
    device.
    """

    standing: Standing
    faults: tuple[DrainCause, ...] = ()


def judge(devices: Iterable[Device]) -> Verdicts:
    """The standing of the node, from all its devices. A node of which nothing is known is unknown."""
    counted = [each for each in devices if decides(each.kind, each.name)]
    faults = [_fault_of(each) for each in counted if each.verdict in _SHUT]
    if faults:
        worst_first = sorted(faults, key=lambda each: each.rank, reverse=True)  # stable
        return Verdicts(standing=Standing.BAD, faults=tuple(worst_first))
    is_well = bool(counted) and all(each.verdict is Verdict.ALLOW for each in counted)
    return Verdicts(standing=Standing.WELL if is_well else Standing.UNKNOWN)


def _fault_of(device: Device) -> DrainCause:
    """A fault of its own comes before a hold by a person, and that before a hold for a reset; a chip that is
    reset with another one may have a fault that asks for nothing, which is not why it takes no work.
    """
    worst = max((each for each in device.reasons if each.code), key=_level, default=None)
    held = [each for each in device.reasons if each.kind == "hold"]
    for_reset = [each for each in held if each.text.startswith(_RESET_PENDING)]
    if worst is not None and (not held or _level(worst) > _ASKS_FOR_NOTHING):
        return DrainCause(device=device.name, code=worst.code, rank=_rank(2, device, worst))
    is_held = bool(for_reset) and held == for_reset
    code = next((each.kind for each in held or device.reasons if each.kind), str(device.verdict))
    return DrainCause(device=device.name, code=code, rank=_rank(0 if is_held else 1, device), is_held=is_held)


def _rank(cause: int, device: Device, worst: Reason | None = None) -> tuple[int, int, int]:
    return cause, _SHUT.index(device.verdict), -1 if worst is None else _level(worst)


def _level(reason: Reason) -> int:
    return -1 if reason.level is None else PRECEDENCE[reason.level]


_PREFIX: Final = "NA:"
"""``sinfo -R | grep NA:`` lists the nodes that nodeagent has drained."""

_TEXT: Final = r"[A-Za-z0-9_./:-]+"
_OWN: Final = re.compile(
    rf"(?:{_PREFIX})?(?P<code>{_TEXT}) (?P<device>{_TEXT})(?: \+\d+)? \(nodeagent(?P<number> #\d+)?\)"
)
"""Also as versions before 0.3 have written it, without the prefix."""

_OTHER_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_./:-]+")
_MOST_CHARACTERS: Final = 64
_COMMENT: Final = "nodeagent: "
_MOST_OF_COMMENT: Final = 240


def reason(faults: Sequence[DrainCause], seq: int) -> str:
    """``NA:80E18005 npu3 +2 (nodeagent #4711)``: the worst fault, how many more devices take no work for a
    reason of their own, and the number of the event. ``faults`` has one at least.
    """
    worst = faults[0]
    others = sum(not each.is_held for each in faults[1:])
    more = (f"+{others}",) if others else ()
    number = worst.seq or seq
    mark = f"(nodeagent #{number})" if number else "(nodeagent)"
    return " ".join((_PREFIX + _plain(worst.code), _plain(worst.device), *more, mark))


def is_own(text: str) -> bool:
    return _OWN.fullmatch(text) is not None


def is_outdated(text: str, faults: Sequence[DrainCause]) -> bool:
    """Whether a reason of ours names a fault that is over, or one that is milder than the worst, or has no
    number while one is known. While devices are only held for a reset it goes on naming the fault that asked
    for the reset.
    """
    found = _OWN.fullmatch(text)
    if found is None or not faults or faults[0].is_held:
        return False
    named = [
        each
        for each in faults
        if (_plain(each.code), _plain(each.device)) == (found["code"], found["device"])
    ]
    is_without_number = found["number"] is None and bool(faults[0].seq)
    return not named or named[0].rank < faults[0].rank or is_without_number


def comment(faults: Sequence[DrainCause]) -> str:
    """``nodeagent: 80E18005 npu3, 80E01801 npu5, held for a reset: npu0 npu1``; "" where there is none."""
    parts = [f"{_plain(each.code)} {_plain(each.device)}" for each in faults if not each.is_held]
    if held := [_plain(each.device) for each in faults if each.is_held]:
        parts.append(f"held for a reset: {' '.join(held)}")
    text = _COMMENT + ", ".join(parts) if parts else ""
    return text if len(text) <= _MOST_OF_COMMENT else text[: _MOST_OF_COMMENT - 4] + " ..."


def is_own_comment(text: str) -> bool:
    """Whether a comment is ours, or there is none: a person's is never replaced."""
    return not text or text.startswith(_COMMENT)


def _plain(text: str) -> str:
    """Without what could end it, for Slurm or for a script that reads ``sinfo``."""
    return _OTHER_CHARACTERS.sub("_", text)[:_MOST_CHARACTERS] or "unknown"
