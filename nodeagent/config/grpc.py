"""``[grpc]`` of nodeagent.toml: the API over TCP, and who may do what there."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from nodeagent.toml.texts import OptionalPath


class GrpcConfig(Struct, frozen=True, kw_only=True):
    """``[grpc]``: TCP, by mutual TLS only. ``roles`` is by the client certificate's name, "*" any other."""

    listen: str = ""
    tls_cert: OptionalPath = ""
    tls_key: OptionalPath = ""
    tls_client_ca: OptionalPath = ""
    roles: Annotated[
        Mapping[str, Literal["none", "reader", "reporter", "operator"]],
        Meta(
            description='a table that gives each certificate name "none", "reader", "reporter" or "operator"'
        ),
    ] = field(default_factory=dict)
