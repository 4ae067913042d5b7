"""The JSON forms: what ``-o json`` shows of a message of the API. Others read these fields.

A form has each field of its message under the proto's name, whether the message came from the daemon or was
made by a replay; what differs is in the tables here. A field without a value is "" or null; none is left out.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared.texts import rfc3339
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2, types_pb2

Form = dict[str, Any]
Show = Callable[[Any], Any]

_FIRST: Final[Mapping[str, str]] = {
    "Event": "seq at kind code name device level condition_level verdict handling condition_id user_induced"
    " evidence reasons why rule source count",
    "Device": "name id kind vendor level verdict handling subhealthy observed observed_at reasons attributes"
    " claims",
    "Condition": "id code name device",
    "Promotion": "id rule code name device",
    "Hold": "id device device_id kind owner set_by",
    "Reset": "id kind",
    "Source": "name observing required",
    "CodeExplanation": "code kind vendor name level user_induced clear_on description action rules file known"
    " family affects recovery",
    "Contribution": "advice",
}
"""The keys that come first, where their order is not the proto's; the others follow in that."""


def form(message: Message) -> Form:
    return {key: show(message) for key, show in _keys(message.DESCRIPTOR)}


def standing(state: fault_service_pb2.Snapshot) -> Form:
    """The devices of a node, and what is open on them."""
    lists: Mapping[str, Iterable[Message]] = {
        "devices": state.devices,
        "conditions": state.conditions,
        "promotions": state.promotions,
        "holds": state.holds,
        "actions": state.resets,
        "jobs": state.jobs,
    }
    return {key: [form(each) for each in messages] for key, messages in lists.items()}


def advice(contribution: fault_service_pb2.Contribution) -> str:
    """What a person should do. What a rule promoted is not over with the fault that it counted."""
    if contribution.HasField("promotion"):
        device = contribution.promotion.device
        return f"It repeats: have {device} examined, or replaced, before you release it."
    return contribution.explanation.action


def _holders(device: types_pb2.Device) -> list[Form] | None:
    """Null where no source reports them."""
    return [form(each) for each in device.holders.holders] if device.HasField("holders") else None


def _modes(explanation: fault_service_pb2.CodeExplanation) -> dict[str, list[Form]]:
    return {each.mode: [form(phase) for phase in each.phases] for each in explanation.modes}


_OTHERWISE: Final[Mapping[str, Mapping[str, Show]]] = {
    "Device": {"holders": _holders},
    "Reset": {"kind": lambda _reset: "reset"},
    "CodeExplanation": {"modes": _modes},
    "Contribution": {"advice": advice},
}
"""Keys that the message does not have, or not so."""


@cache
def _keys(kind: Descriptor) -> list[tuple[str, Show]]:
    """The keys of the form of one kind of message in their order, each with what shows it of a message."""
    name = kind.name
    shown = {field.name: _show(field) for field in kind.fields} | dict(_OTHERWISE.get(name, {}))
    first = _FIRST.get(name, "").split()
    return [(key, shown[key]) for key in (*first, *(each for each in shown if each not in first))]


def _show(field: Any) -> Show:
    """Null for a field that is not set, and for a number of an enum that is not known."""
    name, get = field.name, attrgetter(field.name)
    one: Show | None = None
    if field.enum_type is not None:
        one = _name_of_number(enums.NAMES[field.enum_type.name])
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        return lambda message: dict(sorted(get(message).items()))
    elif field.message_type is not None:
        one = _WELL_KNOWN.get(field.message_type.full_name, form)
    if field.is_repeated:
        return lambda message: list(get(message)) if one is None else [one(each) for each in get(message)]
    if one is None:
        if field.has_presence:
            return lambda message: get(message) if message.HasField(name) else None
        return get
    if field.message_type is None:
        return lambda message: one(get(message))
    return lambda message: one(get(message)) if message.HasField(name) else None


def _name_of_number(names: Mapping[int, str]) -> Show:
    named = {number: str(name) for number, name in names.items()}
    return named.get


def _length(duration: Duration) -> str:
    return f"{duration.ToNanoseconds() / 1e9:g}s"


_WELL_KNOWN: Final[Mapping[str, Show]] = {
    Timestamp.DESCRIPTOR.full_name: rfc3339,
    Duration.DESCRIPTOR.full_name: _length,
}
