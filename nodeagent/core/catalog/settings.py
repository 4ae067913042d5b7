"""The part of the configuration that changes a decision. All else of the configuration is not the core's.

It goes into the digest of the catalog: equal digests decide alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nodeagent.core.model import Level, ResetMode

SECOND_NS = 1_000_000_000
DAY_NS = 24 * 3600 * SECOND_NS


class Mode(StrEnum):
    RESCHEDULING = "rescheduling"
    GRACEFUL = "graceful"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSettings:
    """How far resets go, and their limits. ``modes`` is by vendor, ``mode`` for the others. ``forbidden``:
    why none is done, not even by order, "" if nothing forbids them.

    A proposal is announced for ``announce_ns``, in mode ask a person has ``approval_ns`` to approve it, and
    what blocks it has ``validity_ns`` to go away. The result must show within ``verify_ns``. A device
    is reset ``limit`` times in ``limit_window_ns``, the node ``node_limit`` times, with ``cool_down_ns``
    between any two. ``trust_process_list``: a chip without processes is free though no job ever claimed one.
    ``terminate_registered``: a job that claimed the faulty chip does not block the reset; it is ended.
    """

    mode: ResetMode = ResetMode.OFF
    modes: Mapping[str, ResetMode] = field(default_factory=dict)
    forbidden: str = ""
    announce_ns: int = 30 * SECOND_NS
    approval_ns: int = 600 * SECOND_NS
    validity_ns: int = 3600 * SECOND_NS
    run_ns: int = 600 * SECOND_NS
    verify_ns: int = 150 * SECOND_NS
    cool_down_ns: int = 30 * SECOND_NS
    limit: int = 3
    node_limit: int = 12
    limit_window_ns: int = 6 * 3600 * SECOND_NS
    trust_process_list: bool = False
    terminate_registered: bool = False

    @property
    def is_on(self) -> bool:
        """Whether resets are done for any vendor."""
        return any(mode is not ResetMode.OFF for mode in (self.mode, *self.modes.values()))

    def of_vendor(self, vendor: str) -> ResetMode:
        return self.modes.get(vendor, self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSettings:
    """After how long a fault expires that another system reported and does not repeat; 0 for never.

    ``expire_after_by_sender``: of those for which another time is right.
    """

    expire_after_ns: int = DAY_NS
    expire_after_by_sender: Mapping[str, int] = field(default_factory=dict)

    def expiry_ns(self, sender: str) -> int:
        return self.expire_after_by_sender.get(sender, self.expire_after_ns)

    def recovery_kept_ns(self, sender: str) -> int:
        """How long the recovery of a fault is remembered: as long as the fault would have stayed open, and
        one day where that is for ever: reports of a sender whose clock was once wrong must count again.
        """
        return self.expiry_ns(sender) or DAY_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """How supervised jobs are treated. A job that was asked to stop has ``stop_timeout_ns``, and may wait for
    its chips ``heal_timeout_ns``. ``in_place_registered``: chips that only jobs use which may be stopped and
    run again are judged as in mode graceful, whatever the mode.
    """

    stop_timeout_ns: int = 60 * SECOND_NS
    heal_timeout_ns: int = 600 * SECOND_NS
    in_place_registered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration that changes a decision; all else of the configuration is not the core's.

    ``kernel_line_hold_ns``: how long a kernel line isolates a chip that its own driver reads and finds well.
    ``max_isolated_chips``: how many chips at most are isolated by repetition alone, 0 for no such limit.
    """

    mode: Mode = Mode.RESCHEDULING
    request_tolerance_ns: int = 60 * SECOND_NS
    business_tolerance_ns: int = 60 * SECOND_NS
    self_healing_ns: int = 0
    once_hold_ns: int = 60 * SECOND_NS
    stale_after_ns: int = 30 * SECOND_NS
    kernel_line_hold_ns: int = 30 * SECOND_NS
    start_deadline_ns: int = 30 * SECOND_NS
    unknown_level: Level | None = None
    max_isolated_chips: int = 0
    reset: ResetSettings = field(default_factory=ResetSettings)
    public: PublicSettings = field(default_factory=PublicSettings)
    jobs: JobSettings = field(default_factory=JobSettings)
