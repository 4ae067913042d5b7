"""``[metrics]`` of nodeagent.toml: where Prometheus scrapes."""

from msgspec import Struct


class MetricsConfig(Struct, frozen=True, kw_only=True):
    """``[metrics]``. ``listen`` "" serves none."""

    listen: str = "127.0.0.1:9108"
