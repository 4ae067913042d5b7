"""What every request of the control socket is: a structure whose fields are those of the JSON object."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.shared.fields import FieldError

Deliver = Annotated[bool, Meta(description="Send it to subscribers; no: the event is lost.")]
Severity = Annotated[
    int, Meta(description="As the library has it: 0 suggestion, 1 minor, 2 major, 3 critical.")
]
Part = Annotated[int, Meta(description="Of an NPU: the number of its part, such as a port.")]
EventName = Annotated[str, Meta(description="What the event calls it.")]


def code_of(text: str) -> int:
    """A code as people write it: eight hexadecimal digits, with or without 0x. Raises ``FieldError``."""
    try:
        code = int(text, 16)
    except ValueError:
        code = -1
    if not 0 <= code <= 0xFFFFFFFF:
        raise FieldError(f"code: hexadecimal digits such as 80E01801 are right, not {text!r}")
    return code


class Request(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    """``{"do": TAG, …}``."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        """Does it; returns what to answer. Raises ``ValueError`` or ``LookupError`` that says why not."""
        raise NotImplementedError
