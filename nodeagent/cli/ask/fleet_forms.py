"""How a followed node and its news look: JSON for programs, lines and a table for people."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared import json_forms
from nodeagent.cli.shared.output import json_line, width, write, write_table, write_wrapped
from nodeagent.cli.shared.texts import for_people, rfc3339, without_age, write_event
from nodeagent.client import Handling, Position, Snapshot, Verdict
from nodeagent.core.state.names import natural
from nodeagent.fleet.news import News
from nodeagent.fleet.state import Contact, DeviceState, NodeState
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

_COLUMNS: Final = ("NODE", "VERDICT", "HANDLING", "CHIPS", "WHY")
_WORST_FIRST: Final = tuple(reversed(Verdict))
_MISSED: Final = "events {first} to {last} are no longer kept"


def line(news: News) -> bytes:
    """One object in one line, with its end."""
    return json_line(news_form(news))


def news_form(news: News) -> json_forms.Form:
    """An event has the keys that ``nodeagent events`` shows."""
    return {"node": news.node.endpoint.name, "what": str(news.what), **_body(news)}


def node_form(state: NodeState) -> json_forms.Form:
    """The present state of a node."""
    return {
        "node": state.endpoint.name,
        "address": state.endpoint.address,
        "name": state.said_name,
        "contact": str(state.contact),
        "reason": state.reason,
        "since": _moment(state.since),
        "verdict": str(state.verdict),
        "handling": str(state.handling),
        "seq": state.position.seq if state.position else 0,
        "store_id": _store_id(state.position),
        "devices": [
            {
                "name": part.name,
                "id": device_id,
                "kind": str(part.kind) if part.kind else None,
                "verdict": str(part.verdict),
                "handling": str(part.handling),
                "codes": list(part.codes),
            }
            for device_id, part in state.parts.items()
        ],
    }


def write_news(news: News) -> None:
    """A line for people; of a whole state one line, too."""
    name = news.node.endpoint.name
    if isinstance(news.message, types_pb2.Event):
        write_event(news.message, name)
        return
    at = without_age(_stamp(news.at))
    if isinstance(news.value, Snapshot):
        missed = news.value.missed_from_seq
        lost = _MISSED.format(first=missed, last=news.value.position.seq) if missed else ""
        write_wrapped(f"{at} {news.what:<15} {name} {'; '.join(filter(None, (_stance(news.node), lost)))}")
        return
    write_wrapped(" ".join(filter(None, (f"{at} {news.what:<15} {name}", news.reason))))


def write_nodes(states: Sequence[NodeState], *, every: bool, most: int | None = None) -> None:
    """The count by verdict, then each node that is not well, the worst first; ``most`` rows of them."""
    write_wrapped(headline(states))
    shown = sorted(
        (each for each in states if every or each.verdict is not Verdict.ALLOW),
        key=lambda each: (_WORST_FIRST.index(each.verdict), natural(each.endpoint.name)),
    )
    left_out = 0 if most is None else max(0, len(shown) - most)
    if shown:
        write()
        write_table(_COLUMNS, [_row(each) for each in shown[: len(shown) - left_out]])
    if left_out:
        write(f"and {left_out} more; -o json --once shows each")
    elif len(shown) < len(states):
        write(
            f"{len(states) - len(shown)} other nodes are well" + ("; --all shows each" if not every else "")
        )


def headline(states: Iterable[NodeState]) -> str:
    """``1000 nodes: 2 ISOLATE, 1 UNKNOWN, 997 ALLOW; 1 does not answer``."""
    listed = list(states)
    verdicts = Counter(each.verdict for each in listed)
    contacts = Counter(each.contact for each in listed)
    counted = ", ".join(f"{verdicts[each]} {each}" for each in _WORST_FIRST if verdicts[each])
    names = {
        Contact.AWAY: "not answering",
        Contact.REFUSES: "refusing",
        Contact.NEW: "not asked yet",
    }
    silent = ", ".join(f"{contacts[each]} {name}" for each, name in names.items() if contacts[each])
    nodes = "1 node" if len(listed) == 1 else f"{len(listed)} nodes"
    return "; ".join(filter(None, (f"{nodes}: {counted}", silent)))


def rows_that_fit(lines: int) -> int:
    """How many rows of a table fit below its headline on a terminal; each row may need two lines."""
    return max(1, (lines - 5) // (2 if width() < _COMFORTABLE else 1))


_COMFORTABLE: Final = 120


def _body(news: News) -> json_forms.Form:
    message = news.message
    if isinstance(message, types_pb2.Event):
        return {"store_id": _store_id(news.position), **json_forms.form(message)}
    if isinstance(message, pb.Snapshot) and isinstance(news.value, Snapshot):
        return {
            "store_id": _store_id(news.position),
            "seq": message.seq,
            "at": _moment(news.at),
            "reason": news.value.reason,
            "missed_from_seq": message.missed_from_seq,
            "verdict": str(news.node.verdict),
            "handling": str(news.node.handling),
            **json_forms.standing(message),
        }
    return {"at": _moment(news.at), "reason": news.reason}


def _row(state: NodeState) -> list[str]:
    handling = "-" if state.handling is Handling.NONE else str(state.handling)
    own = state.endpoint.name
    name = own if state.label == own else f"{state.label} ({own})"
    return [name, str(state.verdict), handling, _chips(state), _why(state)]


def _chips(state: NodeState) -> str:
    """How many take work, as far as is known."""
    chips = state.chips
    if not chips:
        return "-"
    return f"{sum(chip.verdict is Verdict.ALLOW for chip in chips)} of {len(chips)}"


def _why(state: NodeState) -> str:
    if state.contact is Contact.NEW:
        return "not asked yet"
    if state.contact is not Contact.ANSWERS:
        return f"{state.contact} since {_time(state.since)}: {state.reason}"
    unwell = [part for part in state.deciding if part.verdict is not Verdict.ALLOW]
    unwell.sort(key=lambda part: (_WORST_FIRST.index(part.verdict), natural(part.name)))
    return ", ".join(map(_fault, unwell))


def _fault(part: DeviceState) -> str:
    return " ".join((part.name, *part.codes)) if part.codes else f"{part.name} {part.verdict}"


def _stance(state: NodeState) -> str:
    parts = [str(state.verdict), "" if state.handling is Handling.NONE else str(state.handling), _why(state)]
    return " ".join(filter(None, parts))


def _store_id(position: Position | None) -> json_forms.Form | None:
    return None if position is None else {"uuid": position.uuid, "epoch": position.epoch}


def _time(at: datetime | None) -> str:
    return "?" if at is None else for_people(_stamp(at))


def _moment(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(_stamp(at))


def _stamp(at: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp
