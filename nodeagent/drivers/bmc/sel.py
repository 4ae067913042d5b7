"""The event log of a BMC (SEL): reads the new records, and maps those that are faults to codes.

Three requests of the standard are used (IPMI 2.0, section 31): the state of the log, the BMC's clock, and one
record. Records are read only if some were added, because a whole log of thousands takes minutes. Nothing is
erased.

The BMC's clock is not the host's, and may be wrong by hours. So the age of a record is its time compared with
the BMC's clock now. A record that is older than this boot of the host is never reported. A record without a
time counts as older, unless it was added while this process watched.

Most events are no faults: starts, buttons, drives that were inserted. An event is a fault here if its part
has failed or is about to fail. The rows are the standard's (IPMI 2.0, tables 42-2 and 42-3; the same in
freeipmi's ipmi-sensor-and-event-code-tables-spec.h and in ipmitool's ipmi_sel.h). Vendor-specific events and
threshold events that only warn are left out.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.bmc.ipmi import BmcSession, IpmiRefused

NETFN: Final = 0x0A
GET_INFO: Final = 0x40
GET_ENTRY: Final = 0x43
GET_TIME: Final = 0x48

FIRST: Final = 0x0000
LAST: Final = 0xFFFF
"""As an id that is asked for; behind the last record it is also the id of the next."""

NOT_PRESENT: Final = 0xCB
"""The completion code for an id that no record has; an empty log has none at all."""

SYSTEM_EVENT: Final = 0x02
NOT_A_TIME: Final = 0x20000000
"""Below it a time counts from the start of the BMC, whose clock was not set (section 37.1)."""

OVERFLOW: Final = 0x80
DEASSERTED: Final = 0x80

MAX_RECORDS: Final = 100
"""So many records are read at a time; the next reading goes on behind them."""

NO_TIME_FROM: Final = 0xE0
"""Records of this kind and above have no time (table 32-1)."""


def _boot_age_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class SelRecord:
    """``at_s`` is on the BMC's clock; ``data`` are the three bytes of the event, its offset in the first."""

    number: int
    at_s: int
    kind: int
    sensor_type: int
    sensor: int
    event_type: int
    is_over: bool
    data: bytes

    @property
    def offset(self) -> int:
        return self.data[0] & 0x0F

    @property
    def position(self) -> int:
        """What distinguishes it from every other record that the log ever had."""
        return self.at_s << 16 | self.number


@dataclass(frozen=True, slots=True)
class Info:
    """``state`` changes with every record that is added, and when the log is erased."""

    records: int
    free_bytes: int
    state: bytes
    is_full: bool


@dataclass(frozen=True, slots=True)
class Added:
    """A record to be reported, and how long ago it was written; None: it has no time."""

    record: SelRecord
    age_s: int | None


class EventLog:
    """``position`` is that of the last record that was read in this boot, None if none was."""

    def __init__(self, position: int | None, boot_age_s: Callable[[], float] = _boot_age_s) -> None:
        self.position = position
        self.info: Info | None = None
        self._boot_age_s = boot_age_s
        self._seen = b""
        self._has_read = False

    def read(self, session: BmcSession) -> list[Added]:
        """What was added since, oldest first, none of before this boot. Raises ``CallFailed``."""
        self.info = info = _info(session.ask("the log", NETFN, GET_INFO))
        if info.state == self._seen:
            return []
        now_s = _time(session.ask("the log's time", NETFN, GET_TIME))
        before = self.position
        records, is_all, is_new = self._records_behind(before, session, info, now_s)
        added = [Added(record, _age_s(record, now_s)) for record in records]
        if records:
            self.position = records[-1].position
        self._seen = info.state if is_all else b""
        self._has_read = True
        return added if is_new else [one for one in added if self._is_of_this_boot(one, before)]

    def _records_behind(
        self, before: int | None, session: BmcSession, info: Info, now_s: int
    ) -> tuple[list[SelRecord], bool, bool]:
        """The records; whether the end of the log was reached; whether all are surely new."""
        if info.records == 0:
            return [], True, True
        found = None if before is None else _entry(session, before & 0xFFFF)
        if found is not None and found[0].position == before:
            return ([], True, True) if found[1] == LAST else (*_forward(session, found[1]), True)
        if self._has_read:
            # The log was erased and started again; or single records were erased.
            records, is_all = _forward(session, FIRST)
            least_s = 0 if before is None else min(before >> 16, now_s)
            return [one for one in records if one.at_s >= least_s], is_all, True
        return self._backward(session, now_s), True, False

    def _backward(self, session: BmcSession, now_s: int) -> list[SelRecord]:
        """From the last record back to the first of this boot: a log of years is not read.

        Records have no link back, but numbers that follow one another; a gap ends the search.
        """
        records: list[SelRecord] = []
        found = _entry(session, LAST)
        while found is not None and len(records) < MAX_RECORDS:
            record = found[0]
            if records and record.number != records[-1].number - 1:
                break
            records.append(record)
            age_s = _age_s(record, now_s)
            if record.number == 0 or (age_s is not None and age_s > self._boot_age_s()):
                break
            found = _entry(session, record.number - 1)
        return records[::-1]

    def _is_of_this_boot(self, one: Added, before: int | None) -> bool:
        is_behind = before is None or one.record.at_s >= before >> 16
        return is_behind and one.age_s is not None and one.age_s <= self._boot_age_s()


def _forward(session: BmcSession, first: int) -> tuple[list[SelRecord], bool]:
    records: list[SelRecord] = []
    for record, next_number in _entries(session, first):
        records.append(record)
        if len(records) == MAX_RECORDS:
            return records, next_number == LAST
    return records, True


def _entries(session: BmcSession, number: int) -> Iterator[tuple[SelRecord, int]]:
    while (found := _entry(session, number)) is not None:
        yield found
        if found[1] in (LAST, number):
            return
        number = found[1]


def _entry(session: BmcSession, number: int) -> tuple[SelRecord, int] | None:
    """A record, and the id of the next one; None: there is none of this id."""
    request = b"\0\0" + number.to_bytes(2, "little") + b"\0\xff"
    try:
        answer = session.ask("a record of the log", NETFN, GET_ENTRY, request)
    except IpmiRefused as refused:
        if refused.code == NOT_PRESENT:
            return None
        raise
    if len(answer) != 18:
        raise CallFailed(f"a record of the log: the answer has {len(answer)} bytes, 18 are right")
    record = _record(answer[2:])
    if number not in (FIRST, LAST, record.number):
        raise CallFailed(f"a record of the log: the BMC gave record {record.number} for {number}")
    return record, int.from_bytes(answer[:2], "little")


def _record(raw: bytes) -> SelRecord:
    """Section 32.1; of records of a vendor's own kinds only number and kind mean anything."""
    return SelRecord(
        number=int.from_bytes(raw[0:2], "little"),
        at_s=int.from_bytes(raw[3:7], "little") if raw[2] < NO_TIME_FROM else 0,
        kind=raw[2],
        sensor_type=raw[10],
        sensor=raw[11],
        event_type=raw[12] & 0x7F,
        is_over=bool(raw[12] & DEASSERTED),
        data=raw[13:16],
    )


def _info(answer: bytes) -> Info:
    if len(answer) < 14:
        raise CallFailed(f"the log: the answer has {len(answer)} bytes, 14 are right")
    return Info(
        records=int.from_bytes(answer[1:3], "little"),
        free_bytes=int.from_bytes(answer[3:5], "little"),
        state=answer[1:3] + answer[5:13],
        is_full=bool(answer[13] & OVERFLOW),
    )


def _time(answer: bytes) -> int:
    if len(answer) < 4:
        raise CallFailed(f"the log's time: the answer has {len(answer)} bytes, 4 are right")
    return int.from_bytes(answer[0:4], "little")


def _age_s(record: SelRecord, now_s: int) -> int | None:
    """None where either has no time: its clock was not set, or is not known (0xFFFFFFFF)."""
    if not NOT_A_TIME <= record.at_s < 0xFFFFFFFF or now_s < NOT_A_TIME:
        return None
    return max(0, now_s - record.at_s)


THRESHOLD: Final = 0x01
SENSOR_SPECIFIC: Final = 0x6F
"""Event types: what the offset counts."""

TEMPERATURE: Final = 0x01
VOLTAGE: Final = 0x02
FAN: Final = 0x04
PROCESSOR: Final = 0x07
POWER_SUPPLY: Final = 0x08
POWER_UNIT: Final = 0x09
MEMORY: Final = 0x0C
DRIVE: Final = 0x0D
CRITICAL_INTERRUPT: Final = 0x13
CHIP_SET: Final = 0x19
SLOT: Final = 0x21
WATCHDOG: Final = 0x23
MANAGEMENT: Final = 0x28

LOWER_CRITICAL: Final = 0x02
LOWER_NON_RECOVERABLE: Final = 0x04
UPPER_CRITICAL: Final = 0x09
UPPER_NON_RECOVERABLE: Final = 0x0B

LOG_IS_FULL: Final = "BMC_LOG_FULL"

CODES: Final[Mapping[tuple[int, int, int], str]] = MappingProxyType(
    {
        (THRESHOLD, TEMPERATURE, UPPER_CRITICAL): "BMC_TEMPERATURE_CRITICAL",
        (THRESHOLD, TEMPERATURE, UPPER_NON_RECOVERABLE): "BMC_TEMPERATURE_NON_RECOVERABLE",
        (THRESHOLD, VOLTAGE, LOWER_CRITICAL): "BMC_VOLTAGE_CRITICAL",
        (THRESHOLD, VOLTAGE, UPPER_CRITICAL): "BMC_VOLTAGE_CRITICAL",
        (THRESHOLD, VOLTAGE, LOWER_NON_RECOVERABLE): "BMC_VOLTAGE_NON_RECOVERABLE",
        (THRESHOLD, VOLTAGE, UPPER_NON_RECOVERABLE): "BMC_VOLTAGE_NON_RECOVERABLE",
        (THRESHOLD, FAN, LOWER_CRITICAL): "BMC_FAN_CRITICAL",
        (THRESHOLD, FAN, LOWER_NON_RECOVERABLE): "BMC_FAN_CRITICAL",
        (SENSOR_SPECIFIC, PROCESSOR, 0x00): "BMC_CPU_IERR",
        (SENSOR_SPECIFIC, PROCESSOR, 0x01): "BMC_CPU_THERMAL_TRIP",
        (SENSOR_SPECIFIC, PROCESSOR, 0x02): "BMC_CPU_START_FAILED",
        (SENSOR_SPECIFIC, PROCESSOR, 0x03): "BMC_CPU_START_FAILED",
        (SENSOR_SPECIFIC, PROCESSOR, 0x04): "BMC_CPU_START_FAILED",
        (SENSOR_SPECIFIC, PROCESSOR, 0x05): "BMC_CPU_CONFIGURATION",
        (SENSOR_SPECIFIC, PROCESSOR, 0x06): "BMC_CPU_UNCORRECTABLE",
        (SENSOR_SPECIFIC, PROCESSOR, 0x0A): "BMC_CPU_THROTTLED",
        (SENSOR_SPECIFIC, PROCESSOR, 0x0B): "BMC_CPU_UNCORRECTABLE",
        (SENSOR_SPECIFIC, POWER_SUPPLY, 0x01): "BMC_POWER_SUPPLY_FAILED",
        (SENSOR_SPECIFIC, POWER_SUPPLY, 0x02): "BMC_POWER_SUPPLY_PREDICTED",
        (SENSOR_SPECIFIC, POWER_SUPPLY, 0x03): "BMC_POWER_SUPPLY_INPUT",
        (SENSOR_SPECIFIC, POWER_SUPPLY, 0x04): "BMC_POWER_SUPPLY_INPUT",
        (SENSOR_SPECIFIC, POWER_SUPPLY, 0x05): "BMC_POWER_SUPPLY_INPUT",
        (SENSOR_SPECIFIC, POWER_UNIT, 0x05): "BMC_POWER_UNIT_FAILED",
        (SENSOR_SPECIFIC, POWER_UNIT, 0x06): "BMC_POWER_UNIT_FAILED",
        (SENSOR_SPECIFIC, POWER_UNIT, 0x07): "BMC_POWER_SUPPLY_PREDICTED",
        (SENSOR_SPECIFIC, MEMORY, 0x01): "BMC_MEMORY_UNCORRECTABLE",
        (SENSOR_SPECIFIC, MEMORY, 0x02): "BMC_MEMORY_UNCORRECTABLE",
        (SENSOR_SPECIFIC, MEMORY, 0x03): "BMC_MEMORY_SCRUB_FAILED",
        (SENSOR_SPECIFIC, MEMORY, 0x04): "BMC_MEMORY_DISABLED",
        (SENSOR_SPECIFIC, MEMORY, 0x05): "BMC_MEMORY_CORRECTABLE_LIMIT",
        (SENSOR_SPECIFIC, MEMORY, 0x07): "BMC_MEMORY_CONFIGURATION",
        (SENSOR_SPECIFIC, MEMORY, 0x0A): "BMC_MEMORY_OVERTEMPERATURE",
        (SENSOR_SPECIFIC, DRIVE, 0x01): "BMC_DRIVE_FAULT",
        (SENSOR_SPECIFIC, DRIVE, 0x02): "BMC_DRIVE_PREDICTED",
        (SENSOR_SPECIFIC, DRIVE, 0x06): "BMC_DRIVE_FAULT",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x02): "BMC_IO_CHECK",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x04): "BMC_PCI_PARITY",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x05): "BMC_PCI_SYSTEM_ERROR",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x08): "BMC_BUS_UNCORRECTABLE",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x09): "BMC_FATAL_NMI",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x0A): "BMC_BUS_FATAL",
        (SENSOR_SPECIFIC, CRITICAL_INTERRUPT, 0x0B): "BMC_BUS_DEGRADED",
        (SENSOR_SPECIFIC, CHIP_SET, 0x01): "BMC_CHIP_SET_THERMAL_TRIP",
        (SENSOR_SPECIFIC, SLOT, 0x00): "BMC_SLOT_FAULT",
        (SENSOR_SPECIFIC, WATCHDOG, 0x00): "BMC_WATCHDOG",
        (SENSOR_SPECIFIC, WATCHDOG, 0x01): "BMC_WATCHDOG",
        (SENSOR_SPECIFIC, WATCHDOG, 0x02): "BMC_WATCHDOG",
        (SENSOR_SPECIFIC, WATCHDOG, 0x03): "BMC_WATCHDOG",
        (SENSOR_SPECIFIC, MANAGEMENT, 0x04): "BMC_SENSOR_FAILED",
        (SENSOR_SPECIFIC, MANAGEMENT, 0x05): "BMC_PART_FAILED",
    }
)
"""(event type, sensor type, offset) -> code, which the number of the sensor refines."""
