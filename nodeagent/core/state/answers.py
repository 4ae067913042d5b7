"""Answers to orders of people: taken, or why not. Each is given with whether the order changed anything."""

from nodeagent.core.model import Answer, Refused

Answered = tuple[bool, Answer]
"""Whether anything changed, so that the order is stored; and the answer to the person."""


def accepted(*ids: str, changed: bool = True) -> Answered:
    return changed, Answer(ids=ids)


def unknown(reason: str, setting: str = "") -> Answered:
    return False, Answer(refused=Refused.UNKNOWN, reason=reason, setting=setting)


def unknown_device(name: str) -> Answered:
    return unknown(f"device: {name!r} is not known")


def not_possible(reason: str, setting: str = "") -> Answered:
    """``setting``: the key of the configuration that refuses it."""
    return False, Answer(refused=Refused.NOT_POSSIBLE, reason=reason, setting=setting)


def no_room(reason: str, *, changed: bool) -> Answered:
    """``changed``: a notice was emitted."""
    return changed, Answer(refused=Refused.NO_ROOM, reason=reason)
