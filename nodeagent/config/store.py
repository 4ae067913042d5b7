"""``[store]`` of nodeagent.toml: how long and how much is kept."""

from typing import Annotated

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.toml.quantities import duration, parse_size_bytes

_DAY_NS = 86_400 * SECOND_NS

Retention = Annotated[int, duration(_DAY_NS, 3650 * _DAY_NS, '"1d" to "3650d"')]
StoreSize = Annotated[
    int,
    Meta(
        ge=16 << 20,
        le=1 << 40,
        description='a size from "16MiB" to "1TiB"',
        extra={"reads": parse_size_bytes},
    ),
]


class StoreConfig(Struct, frozen=True, kw_only=True):
    """``[store]``: what is kept of events and inputs, at most."""

    retention_ns: Retention = field(default=30 * _DAY_NS, name="retention")
    max_size_bytes: StoreSize = field(default=1 << 30, name="max_size")
