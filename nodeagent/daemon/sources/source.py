"""What a supervisor is given of its source, and what it counts. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodeagent.core.catalog.catalog import CounterRule, Pattern, ThresholdRule
from nodeagent.store.records import Cursor
from nodeagent.vendors import HELLO_DEADLINE_S
from nodeagent.wire import Baseline, Device, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """What to run and how patiently; times in seconds. ``config`` is the driver's own section.

    A worker that ends is started again after ``backoff_first_s``, doubled each time up to the limit. Where a
    source that is not required is absent, it is looked for again after ``absent_retry_s``, doubled likewise
    (None: no more). The first one starts after ``start_delay_s``; one that has not said hello
    ``hello_deadline_s`` later has to go. ``stall_deadline_s`` is how long all devices together may owe an
    answer, where that is longer than a call may take.
    ``command`` empty: this interpreter's ``nodeagent.worker`` for ``source``. With ``host`` a unit hosts it
    in place of that, and listens there. ``cursor`` is the stored one; later workers go on from what was
    delivered since. ``known`` are its parts of earlier lives, ``expected_chips`` as in ``ExpectedChips``,
    ``exclude`` as in ``observed.excluded``. ``baselines`` and ``open_codes`` are as in ``wire.Configure``.
    """

    source: str
    boot_id: str
    config: Mapping[str, Setting] = field(default_factory=dict)
    patterns: Sequence[Pattern] = ()
    threshold: Sequence[ThresholdRule] = ()
    counter: Sequence[CounterRule] = ()
    cursor: Cursor | None = None
    known: Sequence[Device] = ()
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    open_codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    expected_chips: int | None = None
    exclude: Sequence[str] = ()
    required: bool = False
    poll_interval_s: float = 1.0
    call_deadline_s: float = 5.0
    stall_deadline_s: float = 0.0
    hello_deadline_s: float = HELLO_DEADLINE_S
    terminate_grace_s: float = 10.0
    backoff_first_s: float = 0.25
    backoff_limit_s: float = 30.0
    absent_retry_s: float | None = 300.0
    absent_retry_limit_s: float = 1800.0
    start_delay_s: float = 0.0
    hang_up_limit_s: float = 2.0
    command: Sequence[str] = ()
    host: Path | None = None


@dataclass(slots=True)
class Statistics:
    """What a supervisor counts; all since its start. ``answers`` are the last of each device: how long its
    call took, in seconds, and whether it succeeded.
    """

    spawned: int = 0
    polls: int = 0
    poll_failures: int = 0
    answers: dict[str, tuple[float, bool]] = field(default_factory=dict)
    records_lost: int = 0
    garbled: int = 0
    readings: dict[str, Mapping[str, float]] = field(default_factory=dict)
