"""One chip, watched: what a poll of it finds, and which part it is.

Each poll asks for its health and its active codes, and for its users; for what it measures each
``MEASURE_EACH``, and where health or codes have changed, so that all is of the same time. A chip
whose health is "not ready" has dropped from its card: that is a fault with a code of its own for as long as
it lasts, and closes nothing else; other calls answer so also where the driver is only busy. A chip whose
codes cannot be asked is not observed. Nothing is retried; what is refused again and again is asked seldom.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.core.model import Kind
from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.drivers.ascend import identity
from nodeagent.drivers.ascend.active_codes import ActiveCodes, Derive
from nodeagent.drivers.ascend.dcmi import ChipPlace
from nodeagent.drivers.ascend.dcmi_calls import (
    INVALID_DEVICE,
    DcmiChip,
    DcmiGeneration,
    NotReady,
    VendorCallFailed,
)
from nodeagent.drivers.ascend.events import LIST_LEADS_S, ChipEvents, Listener
from nodeagent.drivers.ascend.identity import ChipIdentity, LabelReader
from nodeagent.drivers.ascend.reset_groups import Sitting
from nodeagent.drivers.ascend.slow_calls import BackgroundCall, Refusals
from nodeagent.drivers.ascend.telemetry import MAY_WAIT, ChipTelemetry
from nodeagent.drivers.ascend.users import SUSPECTED_HANG, ChipHangWatch, ChipUsers, HangRule, sample_of
from nodeagent.drivers.shared.users import cpu_time_s
from nodeagent.wire import Active, Device, DeviceUser

CARD_DROPPED: Final = "40F84E00"
"""MindCluster's code for a chip whose health query answers "not ready"."""

REMOVED: Final = "the driver has removed the chip: its health query answers that it does not exist"

SLOW_ROUND: Final = 10
"""Each so many polls, what changes slowly is asked, and whether the part is still the same."""

MEASURE_EACH: Final = 5
"""Polls from one that measures to the next. MindCluster's exporter reads a chip's temperature, power and
memory each 5 s, its network and HBM each 60 s (metricConfiguration.json of its npu-exporter).
"""

AWAY_S: Final = 5.0
"""Not read for this long, or by the last poll, the chip may have been swapped."""

LABEL_PATIENCE_S: Final = 0.5
"""So long the first look waits for the label, which most chips give at once."""

UNREADABLE_AFTER: Final = 2
"""A part whose id could be read before is no other one because a call failed once."""

NOTHING_READ: Final[Mapping[str, float]] = {}

_HEALTH: Final = range(4)
_NOT_THERE: Final = 0xFFFFFFFF
"""Reported with the answer 0 for a chip that the driver has removed (``dsmi_get_device_health``)."""


class WatchedChip:
    """``chip`` makes the calls on it, one object for each thread. ``first_turn`` spreads the slow
    rounds of all chips. ``is_removed``: the driver has it no more. ``poll`` and ``look`` may be called from
    different threads; they wait for each other.
    """

    def __init__(
        self,
        device: str,
        place: ChipPlace,
        chip: Callable[[], DcmiChip],
        listener: Listener,
        derive: Derive | None,
        procfs: Path,
        hang_rule: HangRule,
        first_turn: int = 0,
        list_leads_s: float = LIST_LEADS_S,
    ) -> None:
        self.device = device
        self.place = place
        self.events = ChipEvents(device)
        self.is_removed = False
        self._chip = chip()
        self._procfs = procfs
        self._telemetry = ChipTelemetry(self._chip)
        self._slow_telemetry = ChipTelemetry(chip(), MAY_WAIT)
        self._background = BackgroundCall(
            lambda: self._slow_telemetry.read(slow_round=True), NOTHING_READ, device
        )
        self._label = LabelReader(chip(), device)
        self._hang = ChipHangWatch(hang_rule)
        self._identity = ChipIdentity()
        self._described = ""
        self._known_as = ""
        self._unread = 0
        self._turn = first_turn
        self._read_s = self._polled_s = -math.inf
        self._refusals = Refusals()
        self._codes = ActiveCodes(self._chip, self.events, listener, derive, self._refusals, list_leads_s)
        self._processes = ChipUsers(self._chip, procfs, self._refusals)
        self._found_before: tuple[int | None, tuple[Active, ...]] = (None, ())
        self._seen_dropped: tuple[DeviceUser, ...] | None = None
        self._refused = 0
        self._busy = threading.Lock()

    @property
    def attributes(self) -> Mapping[str, str]:
        return self._identity.attributes

    @property
    def sitting(self) -> Sitting:
        """What its reset group follows from, as far as that has been read."""
        known = self._identity
        return Sitting(place=self.place, series=known.series, board=known.board, brother=known.brother)

    @property
    def refused(self) -> int:
        """How often it, or what it measures, was given as what cannot be."""
        counted = (self._codes, self._processes, self._telemetry, self._slow_telemetry)
        return self._refused + sum(part.refused for part in counted)

    def described(self) -> Device:
        """Which part it is, as far as that has been read; it makes no call. Each answer is reported before
        the next is asked for, and the first one before the chip is polled.
        """
        known = self._identity
        if known.die and (not self._known_as or known.die == self._described):
            self._known_as = known.die
        self._described = known.die
        return Device(
            device=self.device,
            kind=Kind.CHIP,
            vendor="ascend",
            identity=known.die,
            attributes={**known.attributes, **self._label.texts()},
        )

    def look(self) -> None:
        """Read which part it is, for the first time. Raises nothing: it can then not be read for now."""
        with self._busy:
            self._identify()
        self._label.wait(LABEL_PATIENCE_S)

    def leave(self) -> None:
        """It is not watched any more."""
        self._background.end()
        self._label.end()

    def poll(self) -> Reading:
        """Raises ``CallFailed`` where its codes cannot be asked."""
        with self._busy:
            self._turn += 1
            polled_s, self._polled_s = self._polled_s, time.monotonic()
            if self.events.restarted or self._polled_s - polled_s > AWAY_S:
                # It was reset, or let alone for that.
                self._refusals.forget()
            if not self._asks("health"):
                # Of what was not asked nothing is reported, but for the users of the chip.
                return Reading(complete=False, users=self._seen_dropped)
            read_s, self._read_s = self._read_s, -math.inf
            try:
                health = self._health()
            except NotReady:
                self._refusals.note("health", refused=True)
                return self._dropped()
            self._refusals.note("health", refused=False)
            reading = self._read(health, was_away=time.monotonic() - read_s > AWAY_S)
            self._read_s = time.monotonic()
            return reading

    # ------------------------------------------------------------------ in pieces

    @property
    def _is_slow_round(self) -> bool:
        return self._turn % SLOW_ROUND == 0

    def _asks(self, call: str) -> bool:
        return self._refusals.asks(call, slow_round=self._is_slow_round)

    def _dropped(self) -> Reading:
        self._telemetry.forget()
        self._hang.forget()
        # The host's driver knows of its processes, also of a chip that no longer answers.
        self._seen_dropped = self._processes.users(slow_round=self._is_slow_round, again=True)
        return Reading(active=(Active(code=CARD_DROPPED),), complete=False, users=self._seen_dropped)

    def _read(self, health: int | None, *, was_away: bool) -> Reading:
        slow = self._is_slow_round or was_away
        self._label.want(self._identity.die, time.monotonic())
        # Before its codes: events of the earlier part do not apply to this one.
        is_unread = bool(self._unread) or not self._identity.die
        if slow or self.events.restarted or (is_unread and self._asks("die")):
            self.events.restarted = False
            self._identify()
        if self._known_as and self._identity.die not in ("", self._known_as):
            # Its codes would be taken for those of the part that was here before.
            return Reading()
        active, complete = self._codes.read(self.device, slow_round=self._is_slow_round)
        users = self._processes.users(slow_round=self._is_slow_round, again=slow)
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        is_hang_due = self._hang.due(now_ns)
        before, self._found_before = self._found_before, (health, active)
        measures = slow or is_hang_due or (health, active) != before or self._turn % MEASURE_EACH == 0
        readings = self._measure(health, slow=slow) if measures else NOTHING_READ
        if is_hang_due:
            self._hang.see(sample_of(readings, users, cpu_time_s(self._procfs, users or ())), now_ns)
        if self._hang.suspected:
            active = (*active, Active(code=SUSPECTED_HANG))
        return Reading(active=active, complete=complete, readings=readings, measured=measures, users=users)

    def _measure(self, health: int | None, *, slow: bool) -> Mapping[str, float]:
        readings = {**self._telemetry.read(slow_round=slow), **self._background.read(ask=slow)}
        if health is not None:
            readings["health"] = health
        return readings

    def _health(self) -> int | None:
        """Raises ``NotReady``. Another failure here does not fail the poll: the codes contain more."""
        health: int | None = None
        try:
            health = self._chip.unsigned("health")
        except NotReady:
            raise
        except CallFailed as error:
            if self._says_not_there(error):
                health = _NOT_THERE
        self.is_removed = health == _NOT_THERE
        if self.is_removed:
            raise CallFailed(REMOVED)
        if health is None:
            return None
        if health not in _HEALTH:
            self._refused += 1
            return None
        return health

    def _says_not_there(self, error: CallFailed) -> bool:
        """Whether the library refuses because a 950 has no MCU: it asks that for the chip's health, too
        (``dcmi_get_device_health_950`` of the vendor's dcmi_inner_info_get_ext.c).
        """
        is_950 = self._chip.generation is DcmiGeneration.V2
        return is_950 and isinstance(error, VendorCallFailed) and error.status == INVALID_DEVICE

    def _identify(self) -> None:
        known, die = self._identity, self._read_die()
        if known.die and not die:
            self._unread += 1
            if self._unread >= UNREADABLE_AFTER:
                self._identity = replace(known, die="")
            return
        self._unread = 0
        if die == known.die and known.complete:
            return
        if known.die not in ("", die):
            self.events.forget()
            self._hang.forget()
        self._label.want(die, time.monotonic())
        self._identity = identity.read_identity(self._chip, self.place, die)

    def _read_die(self) -> str:
        """The die's id, "" where it cannot be read."""
        try:
            die = identity.read_die(self._chip)
        except CallFailed:
            self._refusals.note("die", refused=True)
            return ""
        self._refusals.note("die", refused=False)
        return die
