"""What every request of the control socket is: a structure whose fields are those of the JSON object."""

from typing import Any

import msgspec

from nodeagent.emulator.node import EmulatedNode


class Request(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    """``{"do": TAG, …}``."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        """Does it; returns what to answer. Raises ``ValueError`` or ``LookupError`` that says why not."""
        raise NotImplementedError
