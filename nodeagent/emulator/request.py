"""What every request of the control socket is: a structure whose fields are those of the JSON object."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeagent.emulator.node import EmulatedNode

Deliver = Annotated[bool, Meta(description="Send it to subscribers; no: the event is lost.")]
Severity = Annotated[
    int, Meta(description="As the library has it: 0 suggestion, 1 minor, 2 major, 3 critical.")
]
Part = Annotated[int, Meta(description="Of an NPU: the number of its part, such as a port.")]
EventName = Annotated[str, Meta(description="What the event calls it.")]


class Request(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    """``{"do": TAG, …}``."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        """Does it; returns what to answer. Raises ``ValueError`` or ``LookupError`` that says why not."""
        raise NotImplementedError
