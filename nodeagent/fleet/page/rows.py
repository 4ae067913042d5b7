"""A node as the page gets it: JSON of bounded size, whatever the node sends. Times are in milliseconds since
1970.

The stream has of each node only the devices that are not well, the strictest first, and not more than
``MAX_PARTS_SHOWN``; the whole list is asked for when a node is opened.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from nodeagent.client import Handling, Verdict
from nodeagent.core.state.names import natural
from nodeagent.fleet.state import DeviceState, NodeState

MAX_PARTS_SHOWN: Final = 32
MAX_CODES_SHOWN: Final = 8
MAX_TEXT_CHARACTERS: Final = 512
"""Of a reason, a name or a code."""

_STRICTEST_FIRST: Final = tuple(reversed(Verdict))
_MOST_URGENT_FIRST: Final = tuple(reversed(Handling))

Form = dict[str, Any]


def encoded(form: object) -> bytes:
    """In ASCII and without a line break, as a field of an event stream needs it."""
    return json.dumps(form, separators=(",", ":")).encode()


def node_row(state: NodeState, heard_at: datetime | None) -> Form:
    """What the list shows of a node."""
    unwell = sorted((part for part in state.parts.values() if _is_unwell(part)), key=_strictest_first)
    chips = state.chips
    return {
        "name": state.endpoint.name,
        "label": _text(state.label),
        "contact": str(state.contact),
        "reason": _text(state.reason),
        "contact_since": milliseconds(state.since),
        "heard_at": milliseconds(heard_at),
        "verdict": str(state.verdict),
        "handling": str(state.handling),
        "chips": len(chips),
        "chips_well": sum(chip.verdict is Verdict.ALLOW for chip in chips),
        "devices": [_device(part) for part in unwell[:MAX_PARTS_SHOWN]],
        "devices_left_out": max(0, len(unwell) - MAX_PARTS_SHOWN),
    }


def node_details(state: NodeState, heard_at: datetime | None) -> Form:
    """The same with its address and all of its devices."""
    parts = sorted(state.parts.values(), key=_strictest_first)
    return {
        **node_row(state, heard_at),
        "address": _text(state.endpoint.address),
        "devices": [_device(part) for part in parts],
        "devices_left_out": 0,
    }


def milliseconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def quiet_nodes(heard_at: Iterable[tuple[str, datetime]], before: datetime) -> dict[str, int | None]:
    """When each node was heard last that has sent nothing from then on."""
    return {name: milliseconds(at) for name, at in heard_at if at < before}


def _device(part: DeviceState) -> Form:
    return {
        "name": _text(part.name),
        "kind": str(part.kind or ""),
        "verdict": str(part.verdict),
        "handling": str(part.handling),
        "codes": [_text(code) for code in part.codes[:MAX_CODES_SHOWN]],
        "codes_left_out": max(0, len(part.codes) - MAX_CODES_SHOWN),
        "cause": part.cause,
        "since": milliseconds(part.since),
    }


def _is_unwell(part: DeviceState) -> bool:
    return part.verdict is not Verdict.ALLOW or part.handling is not Handling.NONE


def _strictest_first(part: DeviceState) -> tuple[object, ...]:
    """Of one verdict those that decide about the node come first, and chips that no driver lists last: these
    are known by their PCI address alone.
    """
    return (
        _STRICTEST_FIRST.index(part.verdict),
        not part.decides,
        ":" in part.name,
        _MOST_URGENT_FIRST.index(part.handling),
        natural(part.name),
    )


def bounded(text: str, most_characters: int) -> str:
    """The text, with an ellipsis at its end where it is longer."""
    return text if len(text) <= most_characters else text[: most_characters - 1] + "…"


def _text(text: str) -> str:
    return bounded(text, MAX_TEXT_CHARACTERS)
