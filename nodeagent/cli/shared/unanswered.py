"""What a device is not judged by, in lines: it looks as well as any other otherwise. Words only."""

from collections.abc import Iterator

from nodeagent.messages.pb import types_pb2

_QUESTIONS = "unanswered"
_CODES = "unjudged"
"""Attributes of a device: see docs/attributes.md."""


def lines_of(device: types_pb2.Device) -> Iterator[str]:
    """What its driver does not answer, and what follows from that."""
    if codes := device.attributes.get(_CODES):
        yield f"not judged by {codes.replace(',', ', ')}: the driver does not answer"
    if questions := device.attributes.get(_QUESTIONS):
        yield f"not answered: {questions}"


def line_of(device: types_pb2.Device) -> str:
    """The same in one line below a list, "" where there is nothing to say."""
    if codes := device.attributes.get(_CODES):
        return f"{device.name} is not judged by {codes.replace(',', ', ')}: nodeagent why {device.name}"
    if device.attributes.get(_QUESTIONS):
        return f"{device.name} does not answer all that it is asked: nodeagent why {device.name}"
    return ""
