"""The driver ``bmc``: faults of the node that its management controller (BMC) reports over IPMI.

Each poll reads two things: the list of active faults of a Huawei BMC, which raises and ends them; and the new
records in the event log (SEL) of any BMC, each once. All are faults of the node.

The driver has no devices: it answers the polls of the source in the thread that reads. A BMC may be busy for
a while, so the source is lost only after three failed readings in a row, and this ends no fault. No request
changes anything in the BMC. A BMC of another vendor never gets Huawei's own request.
"""

import select
import sys
import time
from collections.abc import Sequence
from typing import Final, Literal, cast

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.api import CallFailed, Driver, Emit, Link, Population, Reading
from nodeagent.drivers.bmc import fault_list
from nodeagent.drivers.bmc.fault_list import HUAWEI, FaultList
from nodeagent.drivers.bmc.ipmi import INVALID_COMMAND, Bmc, BmcSession, IpmiRefused
from nodeagent.drivers.bmc.sel import CODES, LOG_IS_FULL, SYSTEM_EVENT, Added, EventLog
from nodeagent.wire import Batch, CaughtUp, Configure, Lost, Pattern, Signal

NETFN_APPLICATION: Final = 0x06
GET_DEVICE_ID: Final = 0x01

LOST_AFTER: Final = 3
"""Readings that failed, one after the other."""

SETTLING_READINGS: Final = 10
"""After a loss the BMC has most likely restarted: until it has read its sensors, its list may be short."""

WITHOUT_LIST_AFTER: Final = 20
"""Readings in a row in which the BMC answered, and had no list of faults: it has none. A BMC that restarts
may answer this too, for a while: the faults that it listed before are not over.
"""

AskFaults = Literal["auto", "always", "never"]


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``path``, ``library``, ``fault_list``."""
    config, cursor = configure.config, configure.cursor
    is_of_this_boot = cursor is not None and cursor.boot_id == configure.boot_id
    return BmcDriver(
        bmc=Bmc(str(config.get("path", "/dev/ipmi0")), str(config.get("library", ""))),
        ask_faults=cast(AskFaults, config.get("fault_list", "auto")),
        log=EventLog(cursor.seq if cursor is not None and is_of_this_boot else None),
        emit=emit,
    )


class BmcDriver:
    """Reads once for each poll of the source."""

    def __init__(self, *, bmc: Bmc, ask_faults: AskFaults, log: EventLog, emit: Emit) -> None:
        self._bmc = bmc
        self._ask_faults = ask_faults
        self._log: EventLog | None = log
        self._emit = emit
        self._is_huaweis = False
        self._has_listed = False
        self._without_list = 0
        self._settling = 0
        self._was_full = False
        self._log_failed = False
        self._failed = 0
        self._failed_total = 0

    def open(self) -> None:
        self._bmc.open()

    def devices(self) -> Population:
        return Population()

    def poll(self, device: str) -> Reading:
        raise CallFailed(f"the BMC has no device {device!r} to poll")

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """It has no patterns."""

    def close(self) -> None:
        """The process ends next and closes the descriptor; a request may still be waited for now."""

    def follow(self, link: Link) -> None:
        poller = select.poll()
        poller.register(link.fileno(), select.POLLIN)
        while not link.closed:
            poller.poll()
            if polls := link.asked():
                begun_ns = _now_ns()
                self._read(begun_ns)
                for poll in polls:
                    link.answer(poll, Reading(readings=self._readings()), begun_ns=begun_ns)

    # ------------------------------------------------------------------ reading

    def _read(self, begun_ns: int) -> None:
        try:
            if self._failed >= LOST_AFTER:
                # After it is opened again, no old answer can arrive.
                self._bmc.close()
                self._bmc.open()
            faults = self._list_faults()
            if faults is None:
                self._report_events()
                self._without_list += 1
                has_none = self._ask_faults == "never" or self._without_list >= WITHOUT_LIST_AFTER
                self._emit(CaughtUp(begun_ns=begun_ns, active=() if has_none else None))
            else:
                self._settling = (
                    SETTLING_READINGS if self._failed >= LOST_AFTER else max(0, self._settling - 1)
                )
                is_whole = faults.complete and not self._settling
                self._emit(CaughtUp(begun_ns=begun_ns, active=faults.active, device=NODE, complete=is_whole))
        except CallFailed as error:
            self._note_failure(error)
            return
        if self._failed:
            print(f"the BMC answers again, after {self._failed} failed readings", file=sys.stderr, flush=True)
        self._failed = 0
        if faults is not None:
            self._report_events_after_faults()

    def _note_failure(self, error: CallFailed) -> None:
        self._failed += 1
        self._failed_total += 1
        if self._failed == 1:
            print(f"the BMC cannot be read: {error}", file=sys.stderr, flush=True)
        if self._failed == LOST_AFTER:
            self._emit(Lost(reason=str(error), errno=error.errno))

    # ------------------------------------------------------------------ the list of faults

    def _list_faults(self) -> FaultList | None:
        """None if this BMC has no such list. Raises ``CallFailed``."""
        if self._ask_faults == "never" or (self._ask_faults == "auto" and not self._made_by_huawei()):
            return None
        try:
            faults = fault_list.read(BmcSession(self._bmc))
        except IpmiRefused as refused:
            # A BMC that once had a list has one: it is restarting, and its faults are not over.
            if refused.code != INVALID_COMMAND or self._has_listed:
                raise
            return None
        self._has_listed = True
        return faults

    def _made_by_huawei(self) -> bool:
        """Whether its id (IPMI 2.0, section 20.1) is Huawei's; it is asked until it answers."""
        if not self._is_huaweis:
            answer = BmcSession(self._bmc).ask("the BMC's id", NETFN_APPLICATION, GET_DEVICE_ID)
            if len(answer) < 11:
                raise CallFailed(f"the BMC's id: the answer has {len(answer)} bytes, at least 11 are right")
            self._is_huaweis = int.from_bytes(answer[6:9], "little") & 0xFFFFF == HUAWEI
        return self._is_huaweis

    # ------------------------------------------------------------------ the log of events

    def _report_events_after_faults(self) -> None:
        """The list of faults was read: that the log cannot be, is no loss of the source."""
        try:
            self._report_events()
        except CallFailed as error:
            self._failed_total += 1
            if not self._log_failed:
                print(f"the BMC's log cannot be read: {error}", file=sys.stderr, flush=True)
            self._log_failed = True
        else:
            self._log_failed = False

    def _report_events(self) -> None:
        """Raises ``CallFailed``."""
        if self._log is None:
            return
        before = self._log.position
        try:
            added = self._log.read(BmcSession(self._bmc))
        except IpmiRefused as refused:
            if refused.code != INVALID_COMMAND or self._log.info is not None:
                raise
            self._log = None
            return
        now_ns = _now_ns()
        signals = [signal for one in added if (signal := _signal(one, now_ns)) is not None]
        signals += self._full()
        if signals or self._log.position != before:
            self._emit(Batch(signals=tuple(signals), cursor=self._log.position))

    def _full(self) -> list[Signal]:
        """Once, when the BMC has thrown events away because its log has no room."""
        info = self._log.info if self._log is not None else None
        was_full, self._was_full = self._was_full, info is not None and info.is_full
        if info is None or was_full or not info.is_full:
            return []
        return [Signal(device=NODE, code=LOG_IS_FULL, evidence={"records": str(info.records)})]

    # ------------------------------------------------------------------ telemetry

    def _readings(self) -> dict[str, float]:
        readings = {
            "requests_total": float(self._bmc.requests),
            "failed_readings_total": float(self._failed_total),
            "late_answers_total": float(self._bmc.late_answers),
        }
        if self._log is not None and self._log.info is not None and not self._failed:
            readings["log_records"] = float(self._log.info.records)
            readings["log_free_bytes"] = float(self._log.info.free_bytes)
        return readings


def _signal(added: Added, now_ns: int) -> Signal | None:
    """None: the record is of no fault."""
    record = added.record
    code = CODES.get((record.event_type, record.sensor_type, record.offset))
    if record.kind != SYSTEM_EVENT or code is None:
        return None
    at_ns = now_ns - min(now_ns, (added.age_s or 0) * 1_000_000_000)
    return Signal(
        device=NODE,
        code=f"{code}.{record.sensor:02X}",
        assertion=Assertion.RECOVER if record.is_over else Assertion.ONCE,
        first_ns=at_ns,
        last_ns=at_ns,
        backdated=True,
        evidence={
            "record": str(record.number),
            "bmc_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.at_s)),
            "sensor": f"0x{record.sensor:02X}",
            "sensor_type": f"0x{record.sensor_type:02X}",
            "event_data": record.data.hex(" ").upper(),
        },
    )


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
