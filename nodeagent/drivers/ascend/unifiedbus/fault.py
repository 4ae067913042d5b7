"""From an event of the switch library to a device and a code as the tables write it. Pure.

The code is MindCluster's text ``[alarm,fault,peer,port]``: the alarm in eight hexadecimal digits, the
fault in decimal or ``na`` for a port that is down, what is at the port's other end, and always ``na`` for
the port, which the device names. A fault of a whole chip has all ones for its port, in the sixteen bits that
the field has, and nothing at its other end.
"""

from dataclasses import dataclass
from typing import Final

from nodeagent.core.model import Assertion
from nodeagent.drivers.ascend.library.abi import SwitchEvent, text
from nodeagent.wire import Signal

WHOLE_CHIP: Final = 0xFFFF
NO_FAULT_NUMBER: Final = 0xFFFFFFFF
PORTS: Final = 48

NOT_APPLICABLE: Final = "na"
_PEERS: Final = {0: "cpu", 1: "npu", 2: "L2"}
_ASSERTIONS: Final = {0: Assertion.RECOVER, 1: Assertion.OCCUR}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchFault:
    """The library keeps one fault of a code for a port, and one for a chip."""

    device: str
    code: str
    assertion: Assertion


def read_fault(event: SwitchEvent, chips: int) -> SwitchFault | None:
    """None for what cannot be: a chip or port there is none of, no alarm, an unknown assertion."""
    chip, port = int(event.switchChipid), int(event.switchPortid)
    assertion = _ASSERTIONS.get(event.assertion)
    is_place = chip < chips and (port < PORTS or port == WHOLE_CHIP)
    if assertion is None or not is_place or event.eventType in (0, 0xFFFFFFFF):
        return None
    whole = port == WHOLE_CHIP
    peer = NOT_APPLICABLE if whole else _PEERS.get(event.peerportDevice, NOT_APPLICABLE)
    number = NOT_APPLICABLE if event.subType == NO_FAULT_NUMBER else str(event.subType)
    return SwitchFault(
        device=f"ub{chip}" if whole else f"ub{chip}/{port}",
        code=f"[0x{event.eventType:08x},{number},{peer},{NOT_APPLICABLE}]",
        assertion=assertion,
    )


def signal_of(fault: SwitchFault, event: SwitchEvent, now_ns: int) -> Signal:
    """The report of it, with what else the event says as evidence."""
    evidence = {
        "peer_device": str(event.peerportDevice),
        "peer_port": str(event.peerportId),
        "severity": str(event.severity),
        "event_serial": str(event.eventSerialNum),
        "notify_serial": str(event.notifySerialNum),
        "alarm_time": str(event.alarmRaisedTime),
        "additional_info": text(event.additionalInfo),
    }
    return Signal(
        device=fault.device,
        code=fault.code,
        assertion=fault.assertion,
        first_ns=now_ns,
        last_ns=now_ns,
        evidence={name: value for name, value in evidence.items() if value},
    )
