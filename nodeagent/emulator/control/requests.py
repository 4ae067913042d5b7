"""The requests to the control socket that concern every kind of chip, and the list of all requests.

Each is a structure whose fields are those of the JSON object. The node checks the values.
"""

import re
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from nodeagent.emulator import processes
from nodeagent.emulator.control.bmc_requests import BMC_REQUESTS
from nodeagent.emulator.control.call_requests import (
    CALL_REQUESTS,
    Deliver,
    EmulatorRequest,
    EventName,
    Part,
    Severity,
    code_of,
)
from nodeagent.emulator.control.gpu_requests import GPU_REQUESTS
from nodeagent.emulator.descriptions import address_of
from nodeagent.emulator.layout import LIMITS, FieldError, field_names, set_text
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.switches import CHIP_LEVEL, NO_SUB_TYPE, FabricFault

PEERS: Final = {"cpu": 0, "npu": 1, "l2": 2}
_SWITCH: Final = re.compile(r"ub(\d+)(?:/(\d+))?", re.ASCII)
_GPU: Final = re.compile(r"gpu\d+", re.ASCII)


def xid_of(text: str) -> int:
    """An Xid: a decimal number. Raises ``FieldError``."""
    if not text.isascii() or not text.isdigit():
        raise FieldError(f"code: the number of an Xid, such as 79, is right for a GPU, not {text!r}")
    return int(text)


class _OfFabric(EmulatorRequest):
    device: str
    code: str
    severity: Severity = 2
    sub_type: Annotated[int, Meta(description="Of a switch: the fault's own number.")] = NO_SUB_TYPE
    peer: Annotated[
        Literal["cpu", "npu", "l2"], Meta(description="Of a switch port: what is at its other end.")
    ] = "cpu"
    peer_port: Annotated[int, Meta(description="Of a switch port: the port at its other end.")] = 0

    def _fault(self) -> FabricFault | None:
        """The fault, if it is one of a switch chip (``ub0``) or of its port (``ub0/4``)."""
        named = _SWITCH.fullmatch(self.device)
        if named is None:
            return None
        port = int(named[2]) if named[2] else CHIP_LEVEL
        peer = PEERS[self.peer]
        return FabricFault(
            code_of(self.code), int(named[1]), port, self.sub_type, peer, self.peer_port, self.severity
        )


class Raise(_OfFabric, tag="raise"):
    """Begin a fault: of an NPU or switch a code in hexadecimal digits, of a GPU the number of an Xid.

    Switches: DEVICE is ub0, or ub0/4 for a port.
    """

    name: EventName = ""
    deliver: Deliver = True
    events: Annotated[int, Meta(description="How often an NPU's event is sent.")] = 1
    part: Part = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        fault = self._fault()
        if fault is not None:
            node.switches.raise_fault(fault, deliver=self.deliver)
        elif _GPU.fullmatch(self.device):
            node.gpus.raise_xid(self.device, xid_of(self.code))
        else:
            code = code_of(self.code)
            node.raise_code(
                self.device,
                code,
                severity=self.severity,
                name=self.name,
                deliver=self.deliver,
                events=self.events,
                part=self.part,
            )
        return {}


class Clear(_OfFabric, tag="clear"):
    """End a fault of an NPU or switch; the code "all" ends every one of an NPU."""

    deliver: Deliver = True
    part: Part = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        fault = self._fault()
        if fault is not None:
            node.switches.clear_fault(fault, deliver=self.deliver)
        elif self.code == "all":
            node.clear_codes(self.device, deliver=self.deliver)
        else:
            node.clear_code(self.device, code_of(self.code), deliver=self.deliver, part=self.part)
        return {}


class SendEvent(EmulatorRequest, tag="tell"):
    """Send subscribers an event of an NPU, whatever is active: ASSERTION 0 recover, 1 occur, 2 once."""

    device: str
    code: str
    assertion: int
    severity: Severity = 2
    name: EventName = ""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.send_event(
            self.device, code_of(self.code), self.assertion, severity=self.severity, name=self.name
        )
        return {}


class Set(EmulatorRequest, tag="set"):
    """Set a FIELD of a device, or of the node where DEVICE is "node"; FIELD[PLACE] for one of an array."""

    device: str
    field: str
    value: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        structure = node.state.node if self.device == "node" else node.chip(self.device)
        set_text(structure, self.field, self.value)
        return {}


class Drop(EmulatorRequest, tag="drop"):
    """Let a chip fall off its bus. LISTED no: its driver removes it, and no other process finds it."""

    device: str
    listed: Annotated[bool, Meta(description="Whether the driver still has it.")] = True

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        if not self.listed:
            node.take_out(self.device)
        elif _GPU.fullmatch(self.device):
            node.gpus.lose(self.device)
        else:
            node.drop(self.device)
        return {}


class Return(EmulatorRequest, tag="return"):
    """Let a chip that dropped be back."""

    device: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.return_(self.device)
        return {}


class HoldChip(EmulatorRequest, tag="hold"):
    """Let a process be on a chip, until you let it go; a real one at most until it ends."""

    device: str
    process: int
    memory_mb: Annotated[int, Meta(description="What it has of the chip's memory.")] = 1024
    real: Annotated[
        bool, Meta(description="It runs on this machine; the chip is free when it has ended.")
    ] = False

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.hold(self.device, self.process, self.memory_mb << 20, is_real=self.real)
        return {}


class LetGo(EmulatorRequest, tag="let-go"):
    """Let no process be on a chip."""

    device: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.let_go(self.device)
        return {}


class ReplaceChip(EmulatorRequest, tag="replace"):
    """Put another chip into the slot; another SEED is another one."""

    device: str
    seed: int

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        if _GPU.fullmatch(self.device):
            node.gpus.replace(self.device, self.seed)
        else:
            node.replace_die(self.device, self.seed)
        return {}


class Support(EmulatorRequest, tag="support"):
    """Set whether the product has a function; what it lacks answers that it is not supported."""

    function: str
    supported: Annotated[bool, Meta(description="Whether the product has it.")] = True

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.set_supported(self.function, self.supported)
        return {}


class Show(EmulatorRequest, tag="show"):
    """Show the devices, their active faults, and how often each function was called."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        return {
            "directory": str(node.directory),
            "devices": [_shown(node, device) for device in node.names()],
            "fabric": [asdict(fault) for fault in node.switches.standing()],
            "bmc": [f"{fault.code:08X}" for fault in node.bmc.faults()],
            "calls": node.state.all_calls(),
        }


class ListFields(EmulatorRequest, tag="fields"):
    """List the fields that "set" knows of a device, or of the node where DEVICE is "node"."""

    device: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        return {"fields": field_names(node.state.node if self.device == "node" else node.chip(self.device))}


def _shown(node: EmulatedNode, device: str) -> dict[str, Any]:
    chip = node.chip(device)
    shown: dict[str, Any] = {
        "device": device,
        "pci": address_of(chip),
        "listed": bool(chip.present),
        "ready": bool(chip.ready),
        "processes": processes.on(chip),
    }
    if chip.kind == LIMITS["KIND_NPU"]:
        shown["codes"] = [f"{code:08X}" for code in node.codes(device)]
        shown["booting"] = bool(chip.boot_began_ns)
    return shown


REQUESTS: Final[tuple[type[EmulatorRequest], ...]] = (
    Raise,
    Clear,
    SendEvent,
    Set,
    *CALL_REQUESTS,
    Drop,
    Return,
    HoldChip,
    LetGo,
    ReplaceChip,
    Support,
    Show,
    ListFields,
    *BMC_REQUESTS,
    *GPU_REQUESTS,
)
"""Every request; the command line has a command for each."""
