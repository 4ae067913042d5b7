"""Messages with a value in every field, made of its name and number: one more changes no other."""

from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

M = TypeVar("M", bound=Message)


def filled(kind: type[M], first: int = 0) -> M:
    """Lists and maps have two entries, those of maps not in order. ``first`` is added to the numbers."""
    message = kind()
    for field in message.DESCRIPTOR.fields:
        _fill(message, field, first + field.number)
    return message


def _fill(message: Message, field: Any, number: int) -> None:
    own: Any = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        is_text = field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING
        after, before = ("after", "before") if is_text else (number + 0.5, number)
        own.update({f"z{number}": after, f"a{number}": before})
    elif field.message_type is not None and field.is_repeated:
        own.extend([_part(field, 100 * number), _part(field, 100 * number + 50)])
    elif field.message_type is not None:
        own.CopyFrom(_part(field, 100 * number))
    elif field.is_repeated:
        own.extend([_scalar(field, number), _scalar(field, number + 50)])
    else:
        setattr(message, field.name, _scalar(field, number))


def _part(field: Any, first: int) -> Message:
    match kind := GetMessageClass(field.message_type):
        case _ if kind is Timestamp:
            return Timestamp(seconds=1_700_000_000 + first, nanos=123_456_789)
        case _ if kind is Duration:
            return Duration(seconds=first, nanos=500_000_000)
        case _:
            return filled(kind, first)


def _scalar(field: Any, number: int) -> Any:
    if field.enum_type is not None:
        return 1 + number % (len(field.enum_type.values) - 1)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return True
    return f"{field.name}-{number}" if field.type == FieldDescriptor.TYPE_STRING else number
