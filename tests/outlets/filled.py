"""Messages of the API with a value in every field, each another one: none can be taken for the next."""

from itertools import count
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

M = TypeVar("M", bound=Message)


def filled(kind: type[M], counter: "count[int] | None" = None) -> M:
    """Lists and maps have two entries, those of maps not in order."""
    counter = counter or count(1)
    message = kind()
    for field in message.DESCRIPTOR.fields:
        _fill(message, field, counter)
    return message


def _fill(message: Message, field: Any, counter: "count[int]") -> None:
    own: Any = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        own.update({f"z{next(counter)}": "after", f"a{next(counter)}": "before"})
    elif field.message_type is not None and field.is_repeated:
        own.extend([_part(field, counter), _part(field, counter)])
    elif field.message_type is not None:
        own.CopyFrom(_part(field, counter))
    elif field.is_repeated:
        own.extend([_scalar(field, counter), _scalar(field, counter)])
    else:
        setattr(message, field.name, _scalar(field, counter))


def _part(field: Any, counter: "count[int]") -> Message:
    match kind := GetMessageClass(field.message_type):
        case _ if kind is Timestamp:
            return Timestamp(seconds=1_700_000_000 + next(counter), nanos=123_456_789)
        case _ if kind is Duration:
            return Duration(seconds=next(counter), nanos=500_000_000)
        case _:
            return filled(kind, counter)


def _scalar(field: Any, counter: "count[int]") -> Any:
    number = next(counter)
    if field.enum_type is not None:
        return 1 + number % (len(field.enum_type.values) - 1)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return True
    return f"{field.name}-{number}" if field.type == FieldDescriptor.TYPE_STRING else number
