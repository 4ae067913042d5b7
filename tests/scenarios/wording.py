"""How times, options and events are written in the scenarios."""

import re

from nodeagent.core.model import Event, EventKind
from nodeagent.core.reconcile import REBUILT

_UNITS = {"ns": 1, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_SAYS_WHY = (
    EventKind.NOTICE,
    EventKind.TABLES_REJECTED,
    EventKind.ACTION_PROPOSED,
    EventKind.ACTION_STARTED,
    EventKind.ACTION_FINISHED,
)


def parse_ns(text: str) -> int:
    """Of ``21s``, ``24h`` or ``21s+1ns``; raises ValueError for anything else."""
    total = 0
    for part in text.split("+"):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|ms|s|m|h|d)", part)
        if match is None:
            raise ValueError(f"not a time: {text!r}")
        total += round(float(match[1]) * _UNITS[match[2]])
    return total


def shown_ns(at_ns: int) -> str:
    """In seconds, with the odd nanosecond behind."""
    odd = at_ns % 10**6
    seconds = f"{(at_ns - odd) / 10**9:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{seconds}+{odd}ns" if odd else seconds


def options_of(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Plain words, and those of the form ``name=value``."""
    plain = [word for word in words if "=" not in word]
    return plain, dict(word.split("=", 1) for word in words if "=" in word)


def described(event: Event, wall_offset_ns: int = 0) -> str:
    """One line: when, what, of whom; then how the device stands after it.

    ``wall_offset_ns`` is what the wall clock shows more than the rule clock.
    """
    when = shown_ns(event.at_ns)
    if wall_offset_ns:
        when += f" [wall {shown_ns(event.at_ns + wall_offset_ns)}]"
    if event.job is not None:
        job = event.job
        return f"{when} {event.kind} {job.name}, run {job.run}, {job.stage} -> {job.recommended}: {event.why}"
    named = f'"{event.name}"' if event.unknown and event.name != event.code else ""
    level = f"at {event.condition_level}" if event.condition_level else ""
    about = " ".join(filter(None, (event.code, named, level)))
    what = f"{when} {event.kind} {event.device}" + (f": {about}" if about else "")
    flags = [name for name in ("user_induced", "unknown", "injected", "userspace") if getattr(event, name)]
    counted = [f"count {event.count}"] if event.count > 1 else []
    stands = f" -> {event.level}, {event.verdict}, {event.handling}"
    said = event.why if event.kind in _SAYS_WHY or event.why == REBUILT else ""
    if event.kind is EventKind.STARTED:
        said = event.why.partition("; ")[2]  # what is doubtful about its time
    if said:
        stands += f": {said}"
    return what + (f" ({', '.join(flags + counted)})" if flags + counted else "") + stands
