"""``[nvrx]`` of nodeagent.toml: where NVIDIA's resiliency extension asks for the node's health."""

from msgspec import Struct

from nodeagent.toml.texts import OptionalPath


class NvrxConfig(Struct, frozen=True, kw_only=True):
    """``[nvrx]``. ``socket`` "" serves nobody."""

    socket: OptionalPath = ""
