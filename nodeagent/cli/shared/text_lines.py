"""One event, reason or device as text for people: a line in a pipe, a line or two on a terminal."""

from collections.abc import Container, Mapping
from typing import Any

from nodeagent.cli.shared.output import coloured, on_terminal, width, wrapped, write
from nodeagent.cli.shared.printable import printable
from nodeagent.cli.shared.time_texts import for_people
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

_STEPS = (("started_after_s", "started"), ("ended_after_s", "ended"))
"""When a reset came to a step, counted from its proposal: the key in an event's evidence, and the word."""

_OF_ACTIONS = frozenset(
    (
        types_pb2.EVENT_KIND_ACTION_PROPOSED,
        types_pb2.EVENT_KIND_ACTION_STARTED,
        types_pb2.EVENT_KIND_ACTION_FINISHED,
    )
)
_KIND_WIDTH = 15
_INDENT = " " * 25
"""The length of a time and a space: the rest follows below the first line's kind."""


def write_event(event: types_pb2.Event, node: str = "") -> None:
    """Time, kind, device, code; then what it is and what follows from it. ``node``: of which of many."""
    kind = enums.EVENT_KIND_OF.get(event.kind, "?")
    at = for_people(event.at)
    subject = [*filter(None, [node]), event.device, *filter(None, [event.code])]
    verdict = _verdict(event).split(" ")
    rest = _what(event)
    plain = printable(" ".join([at, f"{kind:<{_KIND_WIDTH}}", *subject, *verdict, rest]).rstrip())
    if not on_terminal() or len(plain) <= width():
        write(at, coloured(kind, _KIND_WIDTH), *subject, *map(coloured, verdict), rest)
        return
    write(at, coloured(kind), *subject, *map(coloured, verdict))
    for line in wrapped(rest, _INDENT, _INDENT):
        write(line)


def _verdict(event: types_pb2.Event) -> str:
    verdict, handling = enums.VERDICT_OF.get(event.verdict), enums.HANDLING_OF.get(event.handling)
    return f"{verdict}" if handling in (None, "NONE") else f"{verdict} {handling}"


def _what(event: types_pb2.Event) -> str:
    """The fault's name and level, why it is shown, and what a reader must know of it."""
    level = enums.LEVEL_OF.get(event.condition_level)
    fault = f"{event.name} ({level})" if level else event.name
    marks = [
        word
        for word, is_set in (
            ("user-induced", event.user_induced),
            ("unknown code", event.unknown),
            ("injected", event.injected),
            ("userspace", event.userspace),
            ("not observed", not event.observed),
            (f"{event.count} times", event.count > 1),
            (f"mode {event.evidence.get('mode', '?')}", event.kind in _OF_ACTIONS),
            ("once", event.kind in _OF_ACTIONS and "once" in event.evidence),
            (f"attempt {event.evidence.get('attempt', '?')}", _is_repeated(event)),
            *(
                (f"{what} after {event.evidence.get(key, '?')} s", key in event.evidence)
                for key, what in _STEPS
            ),
        )
        if is_set
    ]
    of = event.evidence.get("devices", "") if event.kind == types_pb2.EVENT_KIND_ACTION_FINISHED else ""
    report = event.evidence.get("report", "") if of else ""
    words = "; ".join(filter(None, (fault, f"reset of {of}" if of else "", event.why, report)))
    return f"{words} [{', '.join(marks)}]" if marks else words


def _is_repeated(event: types_pb2.Event) -> bool:
    return event.kind in _OF_ACTIONS and event.evidence.get("attempt", "1") != "1"


def level_of(device: types_pb2.Device, but: Container[str] = ()) -> str:
    """The level of its faults, "-" where it has none, but for those conditions."""
    faulty = any(reason.level and reason.id not in but for reason in device.reasons)
    return word(enums.LEVEL_OF, device.level) if faulty else "-"


def word(words: Mapping[Any, object], number: int) -> str:
    """The word of an enum's number, "-" where none is set."""
    return str(words.get(number, "-"))
