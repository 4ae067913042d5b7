"""One chip, watched: what a poll of it finds, and which part it is.

Each poll asks for its health and its active codes, then for what it measures and for who holds it. A chip
whose health is "not ready" has dropped from its card: that is a fault with a code of its own for as long as
it lasts, and closes nothing else; other calls answer so also where the driver is only busy. A chip whose
codes cannot be asked is not observed. Nothing is retried; what is refused again and again is asked seldom.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.core.model import Kind
from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.drivers.ascend.library.dcmi import Chip, Place
from nodeagent.drivers.ascend.library.errors import Nonsense, NotReady, NotSupported
from nodeagent.drivers.ascend.npu import identity
from nodeagent.drivers.ascend.npu.aggregation import UBOE_PORT_DOWN
from nodeagent.drivers.ascend.npu.beside import Beside
from nodeagent.drivers.ascend.npu.events import LIST_LEADS_S, ChipEvents, Listener, Port, code_of, port_of
from nodeagent.drivers.ascend.npu.grouping import Sitting
from nodeagent.drivers.ascend.npu.hang import SUSPECTED_HANG, HangRule, HangWatch, sample_of
from nodeagent.drivers.ascend.npu.identity import Identity
from nodeagent.drivers.ascend.npu.label import LabelReader
from nodeagent.drivers.ascend.npu.refusals import Refusals
from nodeagent.drivers.ascend.npu.telemetry import MAY_WAIT, Telemetry
from nodeagent.drivers.shared.holders import cpu_time_s, holder_of
from nodeagent.wire import Active, Device, Holder

CARD_DROPPED: Final = "40F84E00"
"""MindCluster's code for a chip whose health query answers "not ready"."""

REMOVED: Final = "the driver has removed the chip: its health says that it does not exist"

SLOW_ROUND: Final = 10
"""Each so many polls, what changes slowly is asked, and whether the part is still the same."""

AWAY_S: Final = 5.0
"""Not read for this long, or by the last poll, the chip may have been swapped."""

LABEL_PATIENCE_S: Final = 0.5
"""So long the first look waits for the label, which most chips give at once."""

UNREADABLE_AFTER: Final = 2
"""A part whose id could be read before is no other one because a call failed once."""

NOTHING_READ: Final[Mapping[str, float]] = {}

_HEALTH: Final = range(4)
_NOT_THERE: Final = 0xFFFFFFFF
"""Told with the answer 0 of a chip that the driver has removed (``dsmi_get_device_health``)."""

Derive = Callable[[str, set[str], int], tuple[set[str], bool]]
"""From a device, its active codes and the time to the codes that follow, and whether those are all."""


class WatchedChip:
    """``chip`` gives the calls on it, anew for each thread that makes some. ``first_turn`` spreads the slow
    rounds of all chips. ``is_removed``: the driver has it no more. ``poll`` and ``look`` may be called from
    different threads; they wait for each other.
    """

    def __init__(
        self,
        device: str,
        place: Place,
        chip: Callable[[], Chip],
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
        self._listener = listener
        self._derive = derive
        self._procfs = procfs
        self._telemetry = Telemetry(self._chip)
        self._slow_telemetry = Telemetry(chip(), MAY_WAIT)
        self._beside = Beside(lambda: self._slow_telemetry.read(slow_round=True), NOTHING_READ, device)
        self._label = LabelReader(chip(), device)
        self._hang = HangWatch(hang_rule)
        self._identity = Identity()
        self._described = ""
        self._known_as = ""
        self._unread = 0
        self._turn = first_turn
        self._list_leads_s = list_leads_s
        self._listed: set[str] | None = None
        self._read_s = self._polled_s = -math.inf
        self._asks_events = True
        self._refusals = Refusals()
        self._seen_dropped: tuple[Holder, ...] | None = None
        self._refused = 0
        self._holders: dict[int, Holder] = {}
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
        return self._refused + self._telemetry.refused + self._slow_telemetry.refused

    def described(self) -> Device:
        """Which part it is, as far as that has been read; makes no call. Each answer is reported before the
        next is asked for, and the first one before the chip is polled.
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
        self._beside.end()
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
                # Of what was not asked nothing is reported, but for who held the chip.
                return Reading(complete=False, holders=self._seen_dropped)
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

    def _asks(self, call: str) -> bool:
        return self._refusals.asks(call, slow_round=self._turn % SLOW_ROUND == 0)

    def _dropped(self) -> Reading:
        self._telemetry.forget()
        self._hang.forget()
        # The host's driver knows of its processes, also of a chip that no longer answers.
        self._seen_dropped = self._read_holders(slow=True)
        return Reading(active=(Active(code=CARD_DROPPED),), complete=False, holders=self._seen_dropped)

    def _read(self, health: int | None, *, was_away: bool) -> Reading:
        slow = self._turn % SLOW_ROUND == 0 or was_away
        self._label.want(self._identity.die, time.monotonic())
        # Before its codes: what events said of the part that was here before is not said of this one.
        is_unread = bool(self._unread) or not self._identity.die
        if slow or self.events.restarted or (is_unread and self._asks("die")):
            self.events.restarted = False
            self._identify()
        if self._known_as and self._identity.die not in ("", self._known_as):
            # Its codes would be taken for those of the part that was here before.
            return Reading()
        try:
            listed, full = self._chip.error_codes()
        except Nonsense:
            self._refused += 1
            raise
        active, decided = self._active(listed)
        readings = {**self._telemetry.read(slow_round=slow), **self._beside.read(ask=slow)}
        if health is not None:
            readings["health"] = health
        holders = self._read_holders(slow)
        if self._looks_hung(readings, holders):
            active = (*active, Active(code=SUSPECTED_HANG))
        return Reading(active=active, complete=decided and not full, readings=readings, holders=holders)

    def _health(self) -> int | None:
        """Raises ``NotReady``. The codes say more, so that another failure here is no failure of the poll."""
        try:
            health = self._chip.unsigned("health")
        except NotReady:
            raise
        except CallFailed:
            return None
        self.is_removed = health == _NOT_THERE
        if self.is_removed:
            raise CallFailed(REMOVED)
        if health not in _HEALTH:
            self._refused += 1
            return None
        return health

    def _active(self, listed: Sequence[int]) -> tuple[tuple[Active, ...], bool]:
        """The active codes, and whether it is known that there are no others: what makes no sense in the list
        may stand in the place of one, and what an event is just reporting is left to it.
        """
        nonsense = listed.count(0) + listed.count(0xFFFFFFFF)
        self._refused += nonsense
        codes = {code_of(code) for code in listed if code not in (0, 0xFFFFFFFF)}
        self._await_events(codes)
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        codes, unsettled = self.events.settle(codes, now_ns)
        severity = self._listener.severity
        if UBOE_PORT_DOWN in codes or any(severity(code) is None for code in codes):
            self._read_events()
        decided = True
        if self._derive is not None:
            derived, decided = self._derive(self.device, codes, now_ns)
            codes |= derived
        active = tuple(Active(code=code, severity=severity(code)) for code in sorted(codes - unsettled))
        return active, decided and not nonsense and not unsettled

    def _await_events(self, listed: set[str]) -> None:
        """Of codes that the list shows for the first time; what stood at the start has none."""
        before, self._listed = self._listed, listed
        if before is not None and (fresh := listed - before):
            self.events.expect(fresh, self._list_leads_s)

    def _read_events(self) -> None:
        """Of codes of which no event has given the severity, and the parts on which each stands, which the
        list of codes does not name; only some libraries can say (``dcmiv2_get_device_current_fault_event``).
        """
        if not self._asks_events or not self._asks("events"):
            return
        parts: dict[str, set[Port]] = {}
        try:
            for event in self._chip.current_events():
                self._listener.learn(code_of(event.event_id), event.severity)
                parts.setdefault(code_of(event.event_id), set()).add(port_of(event))
            self.events.stand(parts)
            self._refusals.note("events", refused=False)
        except NotSupported:
            self._asks_events = False
        except Nonsense:
            self._refused += 1
        except CallFailed:
            # All this stays unknown for now; the codes themselves were read.
            self._refusals.note("events", refused=True)

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
        self._identity = identity.read(self._chip, self.place, die)

    def _read_die(self) -> str:
        """The die's id, "" where it cannot be read."""
        try:
            die = identity.read_die(self._chip)
        except CallFailed:
            self._refusals.note("die", refused=True)
            return ""
        self._refusals.note("die", refused=False)
        return die

    def _read_holders(self, slow: bool) -> tuple[Holder, ...] | None:
        if not self._asks("processes"):
            return None
        try:
            pids = self._chip.processes()
        except Nonsense:
            self._refused += 1
            return None
        except CallFailed:
            self._refusals.note("processes", refused=True)
            return None
        self._refusals.note("processes", refused=False)
        if any(pid <= 0 for pid in pids):
            self._refused += 1
            return None
        known = {} if slow else self._holders
        self._holders = {pid: known.get(pid) or self._holder(pid) for pid in pids}
        return tuple(self._holders[pid] for pid in sorted(self._holders))

    def _looks_hung(self, readings: Mapping[str, float], holders: Sequence[Holder] | None) -> bool:
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if self._hang.due(now_ns):
            cpu_s = cpu_time_s(self._procfs, holders or ())
            self._hang.see(sample_of(readings, holders, cpu_s), now_ns)
        return self._hang.suspected

    def _holder(self, pid: int) -> Holder:
        """One that cannot be looked at holds the chip all the same."""
        return holder_of(self._procfs, pid) or Holder(pid=pid, start_time=0, command="")
