"""The truth about a node in one line: how many of which chips are well, and what is wrong with the others.

It reads verdicts only, and gives no reasons.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from nodeagent.core.model import Handling, Verdict
from nodeagent.core.state.names import natural
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

ALLOW: Final = types_pb2.VERDICT_ALLOW

_WORDS: Final[dict[types_pb2.Verdict, str]] = {
    types_pb2.VERDICT_ISOLATE: "isolated",
    types_pb2.VERDICT_NO_NEW_JOBS: "with no new jobs",
    types_pb2.VERDICT_UNKNOWN: "unknown",
}
"""What is said of those that take no work, the worst first."""

_NODES: Final[dict[types_pb2.Verdict, str]] = {
    types_pb2.VERDICT_ISOLATE: "the node takes no work",
    types_pb2.VERDICT_NO_NEW_JOBS: "the node takes no new jobs",
}
_UNLISTED: Final = "chip"
_NODE_UNKNOWN: Final = "it is not known whether the node takes work"
_KIND_OF_NAME: Final = re.compile(r"([a-z]+)[0-9]+")
"""``npu3`` is an NPU, ``gpu0`` a GPU; what is known by its address alone is a chip that no driver lists."""


def headline(node: types_pb2.Device, devices: Iterable[types_pb2.Device]) -> str:
    """``10 of 16 NPUs are well, 5 isolated, 1 unknown``: the node itself first where it takes no work, then
    the chips of each sort, those with a fault first, and last what no driver lists.
    """
    others = sorted((each for each in devices if each.name != node.name), key=lambda each: natural(each.name))
    by_noun: dict[str, list[types_pb2.Device]] = {}
    for chip in others:
        if chip.kind == types_pb2.KIND_CHIP:
            by_noun.setdefault(noun(chip), []).append(chip)
    unlisted = by_noun.pop(_UNLISTED, [])
    rest = [device for device in others if device.kind != types_pb2.KIND_CHIP]
    worst_first = sorted(by_noun.items(), key=lambda each: all(chip.verdict == ALLOW for chip in each[1]))
    parts = [] if node.verdict == ALLOW else [f"{stance(node)}: {_NODES.get(node.verdict, _NODE_UNKNOWN)}"]
    parts += [_of_chips(what, each) for what, each in worst_first] or ["no chip is known"]
    parts += _not_working("other device", rest) + _not_working("unlisted chip", unlisted)
    return "; ".join(parts)


def stance(device: types_pb2.Device) -> str:
    """Verdict, and handling where that says anything."""
    verdict = enums.VERDICT_OF.get(device.verdict, Verdict.UNKNOWN)
    handling = enums.HANDLING_OF.get(device.handling, Handling.NONE)
    return str(verdict) if handling is Handling.NONE else f"{verdict}, {handling}"


def noun(chip: types_pb2.Device) -> str:
    """What sort of chip it is, by its name."""
    match = _KIND_OF_NAME.fullmatch(chip.name)
    return match[1].upper() if match else _UNLISTED


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _of_chips(what: str, chips: Sequence[types_pb2.Device]) -> str:
    well = sum(chip.verdict == ALLOW for chip in chips)
    said = f"{well} of {counted(len(chips), what)} {'is' if 1 in (well, len(chips)) else 'are'} well"
    return ", ".join((said, *_not_working("", chips)))


def _not_working(what: str, devices: Sequence[types_pb2.Device]) -> list[str]:
    """``5 isolated``, ``1 other device unknown``."""
    counts = Counter(device.verdict for device in devices if device.verdict != ALLOW)
    verdicts = [each for each in _WORDS if counts[each]]
    return [f"{counted(counts[each], what) if what else counts[each]} {_WORDS[each]}" for each in verdicts]
