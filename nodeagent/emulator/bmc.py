"""The BMC of an emulated node: the faults that it lists, the records of its log, and how it answers.

Every node has a BMC. On a node with NPUs it is Huawei's, and lists its active faults.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.state import NO_LIE, EmulatorState

HUAWEI: Final = 2011
SUPERMICRO: Final = 10876
"""Numbers that IANA gave to the vendors."""

MODES: Final[Mapping[str, int]] = {
    "well": LIMITS["BMC_WELL"],
    "silent": LIMITS["BMC_SILENT"],
    "busy": LIMITS["BMC_BUSY"],
    "garbage": LIMITS["BMC_GARBAGE"],
    "truncated": LIMITS["BMC_TRUNCATED"],
}
"""How it answers, by its name."""

SYSTEM_EVENT: Final = 0x02
SENSOR_SPECIFIC: Final = 0x6F
IS_OVER: Final = 0x80


@dataclass(frozen=True, slots=True)
class BmcFault:
    """One fault of the list, in the vendor's numbers."""

    code: int
    severity: int = 2
    part_type: int = 0
    part: int = 0


class BmcIsFull(ValueError):
    """There is no room for another fault or record."""


class Controller:
    """``node.bmc`` of an ``EmulatedNode``; every method is done when it returns."""

    def __init__(self, state: EmulatorState) -> None:
        self._state = state

    def describe(self, manufacturer: int) -> None:
        """A BMC that is well, with an empty log."""
        node = self._state.node
        node.bmc_present = 1
        node.bmc_manufacturer = manufacturer
        node.bmc_has_list = manufacturer == HUAWEI
        node.bmc_has_log = 1
        node.bmc_faults_per_page = 10
        node.bmc_total_lie = NO_LIE
        node.sel_next_number = 1

    def raise_fault(self, fault: BmcFault) -> None:
        """It is listed; the same one only once. Raises ``BmcIsFull``."""
        if fault in self.faults():
            return
        with self._state.locked():
            count = int(self._state.node.alarm_count)
            if count == LIMITS["ALARMS"]:
                raise BmcIsFull(f"{count} faults are active already: clear some first")
            for name in BmcFault.__slots__:
                setattr(self._state.alarms[count], name, getattr(fault, name))
            self._state.node.alarm_count = count + 1

    def clear_fault(self, code: int, part: int | None = None) -> None:
        """It is no longer listed, on this part or on any."""
        self._keep([one for one in self.faults() if one.code != code or part not in (None, one.part)])

    def clear_faults(self) -> None:
        self._keep([])

    def faults(self) -> list[BmcFault]:
        """The faults that are listed, in their order."""
        rows = self._state.alarms[: self._state.node.alarm_count]
        return [BmcFault(**{name: getattr(row, name) for name in BmcFault.__slots__}) for row in rows]

    def _keep(self, faults: Sequence[BmcFault]) -> None:
        with self._state.locked():
            for place, fault in enumerate(faults):
                for name in BmcFault.__slots__:
                    setattr(self._state.alarms[place], name, getattr(fault, name))
            self._state.node.alarm_count = len(faults)

    def log(
        self,
        sensor_type: int,
        offset: int,
        sensor: int = 1,
        *,
        event_type: int = SENSOR_SPECIFIC,
        is_over: bool = False,
        age_s: int = 0,
        at_s: int | None = None,
        kind: int = SYSTEM_EVENT,
        data: Sequence[int] = (0xFF, 0xFF),
    ) -> int:
        """Adds a record of ``age_s`` ago, or with the time ``at_s``; its number. Raises ``BmcIsFull``."""
        node = self._state.node
        with self._state.locked():
            count = int(node.sel_count)
            if count == LIMITS["SEL_RECORDS"]:
                node.sel_overflow = 1
                raise BmcIsFull(f"{count} records are in the log already: erase it")
            record: Any = self._state.sel[count]
            now_s = int(time.time()) + node.bmc_clock_offset_s
            record.number, record.kind = node.sel_next_number, kind
            record.at_s = now_s - age_s if at_s is None else at_s
            record.generator, record.revision = 0x20, 0x04
            record.sensor_type, record.sensor = sensor_type, sensor
            record.event_type = event_type | (IS_OVER if is_over else 0)
            record.data[0], record.data[1], record.data[2] = offset, *data
            node.sel_count, node.sel_added_s = count + 1, now_s
            node.sel_next_number = node.sel_next_number % 0xFFFE + 1
            return int(record.number)

    def erase_log(self) -> None:
        """Its numbers start again."""
        node = self._state.node
        with self._state.locked():
            node.sel_count = node.sel_overflow = 0
            node.sel_next_number = 1
            node.sel_erased_s = int(time.time()) + node.bmc_clock_offset_s

    def answer(self, mode: str, times: int = -1) -> None:
        """One of ``MODES``, for so many requests from now on; -1: for all."""
        with self._state.locked():
            self._state.node.bmc_mode = MODES[mode]
            self._state.node.bmc_mode_times = times
