"""The faults of an NPU: those that stand, and the events that subscribers of ``libdcmi.so`` receive."""

import time
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.emulator.shared.layout import LIMITS
from nodeagent.emulator.shared.state import NO_LIE, State

RECOVER: Final = 0
OCCUR: Final = 1
ONCE: Final = 2
"""The vendor's assertions."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``severity`` is the library's: 0 suggestion, 1 minor, 2 major, 3 critical; ``part`` the number of the
    part of the chip that has it, such as a port.
    """

    code: int
    severity: int = 2
    name: str = ""
    part: int = 0

    @property
    def text(self) -> bytes:
        return (self.name or f"fault {self.code:08X}").encode()


class TooManyFaults(ValueError):
    """No more faults can stand on this chip."""


def standing(state: State, chip: int) -> list[Fault]:
    """What stands on a chip, oldest first."""
    rows = state.standing[chip][: state.chips[chip].code_count]
    return [Fault(row.code, row.severity, row.name.decode(), row.part) for row in rows]


def add_standing(state: State, chip: int, fault: Fault) -> None:
    """Lets a fault stand; one of that code and part that stands already stays as it is. Raises
    ``TooManyFaults``.
    """
    with state.locked():
        count = int(state.chips[chip].code_count)
        if any((row.code, row.part) == (fault.code, fault.part) for row in state.standing[chip][:count]):
            return
        if count == LIMITS["CODES"]:
            raise TooManyFaults(f"{count} faults stand on this chip already: clear some first")
        row: Any = state.standing[chip][count]
        row.part = fault.part
        row.code, row.severity, row.name = fault.code, fault.severity, fault.text[: LIMITS["NAME"] - 1]
        row.serial, row.raised_ms = state.node.next_serial + 1, time.time_ns() // 1_000_000
        state.chips[chip].code_count = count + 1


def remove_standing(state: State, chip: int, code: int, part: int = 0) -> Fault:
    """Takes a fault away and returns it; where none such stands, one such as might have been."""
    removed = Fault(code, part=part)
    with state.locked():
        rows, kept = state.standing[chip], 0
        for place in range(state.chips[chip].code_count):
            if (rows[place].code, rows[place].part) == (code, part):
                removed = Fault(code, rows[place].severity, rows[place].name.decode(), part)
                continue
            if kept != place:
                rows[kept] = rows[place]
            kept += 1
        state.chips[chip].code_count = kept
    return removed


def send_event(state: State, chip: int, fault: Fault, assertion: int, device_id: int | None = None) -> None:
    """Sends it to subscribers, whatever stands. ``device_id``: instead of the chip's own number."""
    with state.locked():
        state.post(
            library=LIMITS["LIBRARY_DCMI"],
            chip=chip,
            code=fault.code,
            part=fault.part,
            assertion=assertion,
            device_id_lie=NO_LIE if device_id is None else device_id,
            severity=fault.severity,
            name=fault.text[: LIMITS["TEXT"] - 1],
            unterminated=state.node.unterminated,
        )
