"""What the control socket can be asked to do to the BMC."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from nodeagent.emulator.bmc import BmcFault
from nodeagent.emulator.control.call_requests import EmulatorRequest, code_of
from nodeagent.emulator.node import EmulatedNode

PartType = Annotated[int, Meta(description="The vendor's number for the sort of the part.")]
PartNumber = Annotated[int, Meta(description="Which of these parts.")]


class BmcRaise(EmulatorRequest, tag="bmc-raise"):
    """Let the BMC of a node with NPUs list a fault: CODE is one of "node" in the tables, such as 0000001D."""

    code: str
    severity: Annotated[int, Meta(description="The vendor's number.")] = 2
    part_type: PartType = 0
    part: PartNumber = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.bmc.raise_fault(BmcFault(code_of(self.code), self.severity, self.part_type, self.part))
        return {}


class BmcClear(EmulatorRequest, tag="bmc-clear"):
    """Let the BMC no longer list a fault; the code "all" ends every one."""

    code: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        if self.code == "all":
            node.bmc.clear_faults()
        else:
            node.bmc.clear_fault(code_of(self.code))
        return {}


class BmcLog(EmulatorRequest, tag="bmc-log"):
    """Add a record to the BMC's log: a SENSOR_TYPE and OFFSET of IPMI, such as 12 1 for lost memory."""

    sensor_type: int
    offset: int
    sensor: Annotated[int, Meta(description="The number of the sensor.")] = 1
    event_type: Annotated[int, Meta(description="111: the offset is the sensor type's own; 1: a limit.")] = (
        111
    )
    over: Annotated[bool, Meta(description="The event is over.")] = False
    age_s: Annotated[int, Meta(description="So many seconds ago.")] = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        number = node.bmc.log(
            self.sensor_type,
            self.offset,
            self.sensor,
            event_type=self.event_type,
            is_over=self.over,
            age_s=self.age_s,
        )
        return {"record": number}


class BmcErase(EmulatorRequest, tag="bmc-erase"):
    """Erase the BMC's log."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.bmc.erase_log()
        return {}


class BmcAnswer(EmulatorRequest, tag="bmc-answer"):
    """Set how the BMC answers from now on, and how late."""

    mode: Literal["well", "silent", "busy", "garbage", "truncated"]
    delay_ms: Annotated[int, Meta(description="How long each answer takes.")] = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.bmc.answer(self.mode)
        node.state.node.bmc_delay_ms = self.delay_ms
        return {}


BMC_REQUESTS: Final[tuple[type[EmulatorRequest], ...]] = (BmcRaise, BmcClear, BmcLog, BmcErase, BmcAnswer)
"""Each has a command of its name."""
