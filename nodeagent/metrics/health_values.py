"""How the daemon itself does, as the metrics show it. Values only; the daemon fills them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """The health of one source and its worker. Counts are since start. ``last_poll_*`` are of all its
    devices: the slowest, and whether each answered well; None before the first.

    ``state`` is the worker's, or ``waiting`` before a respawn, or ``abandoned`` when nothing but a stuck
    process is left. ``absent``: there is nothing of it here, and nobody expects it. ``expected_chips``: None
    of a source without chips, 0 where any number is right. ``readings`` are the last of each device that is
    observed (``*``: of the source).
    """

    source: str
    state: str
    observing: bool = False
    absent: bool = False
    listed_chips: int = 0
    expected_chips: int | None = None
    pid: int | None = None
    abandoned_pids: tuple[int, ...] = ()
    restarts: int = 0
    polls: int = 0
    poll_failures: int = 0
    last_poll_duration_s: float | None = None
    last_poll_ok: bool | None = None
    late_devices: tuple[str, ...] = ()
    records_lost: int = 0
    garbled: int = 0
    readings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of the daemon. Counts are since start. ``degraded`` says why the store is not durable, "" if
    it is; ``dropped_*`` count what memory could not keep while it was not. ``volatile``: a reboot forgets it.
    ``public_messages`` are by sender and result, ``public_faults`` by sender and what became of them.
    """

    queue_depth: int = 0
    queue_capacity: int = 0
    inputs: int = 0
    commits: int = 0
    commit_total_s: float = 0.0
    commit_last_s: float = 0.0
    degraded: str = ""
    volatile: bool = False
    dropped_events: int = 0
    dropped_inputs: int = 0
    public_messages: Mapping[tuple[str, str], int] = field(default_factory=dict)
    public_faults: Mapping[tuple[str, str], int] = field(default_factory=dict)
    sources: tuple[SourceHealth, ...] = ()


HealthSource = Callable[[], Health]
"""Called from the scraping thread: it may only read attributes."""
