"""How the daemon itself does, as it tells the metrics. Values only; the daemon fills them."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """Of one source's worker. ``poll_*`` is the last poll, None before the first; counts are since start."""

    name: str
    state: str
    pid: int | None = None
    restarts: int = 0
    poll_duration_s: float | None = None
    poll_success: bool | None = None
    records_lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Of the daemon. Counts are since start. ``degraded`` tells why the store is not durable, "" if it is."""

    queue_depth: int = 0
    queue_capacity: int = 0
    inputs: int = 0
    commits: int = 0
    commit_total_s: float = 0.0
    commit_last_s: float = 0.0
    degraded: str = ""
    sources: tuple[SourceHealth, ...] = ()


HealthSource = Callable[[], Health]
"""Called from the scraping thread: it may only read attributes."""
