"""What the control socket can be asked to do to GPUs and their driver, in addition to what works for every
chip.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from nodeagent.emulator.control.call_requests import Deliver, EmulatorRequest
from nodeagent.emulator.gpus import Instance, Location
from nodeagent.emulator.layout import FieldError
from nodeagent.emulator.node import EmulatedNode

Detail = Annotated[str, Meta(description="How the line goes on.")]
KernelLog = Annotated[str, Meta(description="Write the line there too: a file, or /dev/kmsg.")]
Corrected = Annotated[int, Meta(description="For errors that were corrected.")]
Uncorrected = Annotated[int, Meta(description="For errors that were not.")]


EVENTS_REACH: Final = ("registered", "everybody", "first")
"""In the order of ``gpu_events_to``."""


@contextmanager
def log_of(path: str) -> Iterator[Path | None]:
    """Where a kernel line goes; nowhere for an empty text. Raises ``FieldError`` if it cannot be written."""
    try:
        yield Path(path) if path else None
    except OSError as failed:
        raise FieldError(f"kernel_log: {path}: {failed.strerror}") from failed


class Xid(EmulatorRequest, tag="xid"):
    """Send an Xid of a GPU; with KERNEL_LOG its line too, to a file or /dev/kmsg. DELIVER no: only that."""

    device: str
    xid: int
    detail: Detail = ""
    process: Annotated[int, Meta(description="The process that the line names; 0: none.")] = 0
    process_name: Annotated[str, Meta(description="The name of that process.")] = "python3"
    deliver: Deliver = True
    kernel_log: KernelLog = ""
    instance: Annotated[int, Meta(description="The MIG instance that it concerns; -1: the GPU.")] = -1
    compute_instance: Annotated[int, Meta(description="Its compute instance; -1: not known.")] = -1
    recovery_action: Annotated[int, Meta(description="The action that is due with it; -1: as before.")] = -1

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        with log_of(self.kernel_log) as log:
            node.gpus.raise_xid(
                self.device,
                self.xid,
                detail=self.detail,
                process_id=self.process,
                process_name=self.process_name,
                deliver=self.deliver,
                kernel_log=log,
                instance=self._instance(),
                recovery_action=self.recovery_action if self.recovery_action >= 0 else None,
            )
        return {}

    def _instance(self) -> Instance | None:
        if self.instance < 0:
            return None
        return Instance(self.instance, self.compute_instance if self.compute_instance >= 0 else None)


class SXid(EmulatorRequest, tag="sxid"):
    """Write the line of an SXid of an NVSwitch to KERNEL_LOG, a file or /dev/kmsg."""

    switch: int
    sxid: int
    kernel_log: str
    fatal: Annotated[bool, Meta(description="Whether the line calls it fatal.")] = False
    link: Annotated[int, Meta(description="The link of the switch.")] = 0
    detail: Detail = ""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        with log_of(self.kernel_log) as log:
            if log is None:
                raise FieldError("kernel_log: a file or /dev/kmsg is right, not nothing")
            node.gpus.raise_sxid(
                self.switch, self.sxid, kernel_log=log, fatal=self.fatal, link=self.link, detail=self.detail
            )
        return {}


class RecoveryAction(EmulatorRequest, tag="recovery-action"):
    """Let another recovery action be due: 0 none, 1 GPU reset, 2 node reboot, 4 drain and reset, .."""

    device: str
    action: int
    deliver: Deliver = True
    kernel_log: KernelLog = ""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        with log_of(self.kernel_log) as log:
            node.gpus.set_recovery_action(self.device, self.action, deliver=self.deliver, kernel_log=log)
        return {}


class CountEcc(EmulatorRequest, tag="count-ecc"):
    """Count so many more ECC errors of a GPU at a LOCATION."""

    device: str
    location: Location
    corrected: Corrected = 0
    uncorrected: Uncorrected = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.gpus.count_ecc(
            self.device, self.location, corrected=self.corrected, uncorrected=self.uncorrected
        )
        return {}


class Remap(EmulatorRequest, tag="remap"):
    """Remap so many more rows of a GPU's memory. FAILED: a row could not be."""

    device: str
    corrected: Corrected = 0
    uncorrected: Uncorrected = 0
    pending: Annotated[bool, Meta(description="Rows wait for a reset to be remapped.")] = False
    failed: Annotated[bool, Meta(description="A row could not be remapped.")] = False

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.gpus.remap(
            self.device, corrected=self.corrected, uncorrected=self.uncorrected, pending=self.pending
        )
        if self.failed:
            node.gpus.fail_remap(self.device)
        return {}


class NvLink(EmulatorRequest, tag="nvlink"):
    """Let an NVLink of a GPU go down or come back."""

    device: str
    link: int
    state: Literal["down", "up"]

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.gpus.set_link(self.device, self.link, active=self.state == "up")
        return {}


class FabricRequest(EmulatorRequest, tag="fabric"):
    """Set a GPU's registration with the fabric: 1 not started, 2 in progress, 3 completed."""

    device: str
    state: int
    status: Annotated[int, Meta(description="How the registration went, as NVML has it; 0: well.")] = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.gpus.set_fabric(self.device, self.state, status=self.status)
        return {}


class Partition(EmulatorRequest, tag="partition"):
    """Cut a GPU into MIG devices of so many slices each, such as 3,2,1; "none" makes it whole."""

    device: str
    slices: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        words = [] if self.slices == "none" else self.slices.split(",")
        if not all(word.isascii() and word.isdigit() for word in words):
            raise FieldError(f"slices: numbers such as 3,2,1 or none are right, not {self.slices!r}")
        node.gpus.partition(self.device, [int(word) for word in words])
        return {}


class EventsRequest(EmulatorRequest, tag="events"):
    """Choose which subscribers get Xids: those of their GPU, or others, as by a library with a defect."""

    reach: Literal["registered", "everybody", "first"]

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.state.node.gpu_events_to = EVENTS_REACH.index(self.reach)
        return {}


class Unpopulated(EmulatorRequest, tag="unpopulated"):
    """Let the call for field values answer this where none of its fields has a value; 0: it succeeds."""

    answer: int

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.state.node.gpu_unpopulated_answer = self.answer
        return {}


class DriverRequest(EmulatorRequest, tag="driver"):
    """Unload the GPUs' driver, or load it: of another VERSION where given."""

    state: Literal["unloaded", "loaded"]
    version: Annotated[str, Meta(description="The version that is loaded; else the same.")] = ""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        if self.state == "unloaded":
            node.gpus.driver.unload()
        else:
            node.gpus.driver.load(self.version)
        return {}


class LibraryRequest(EmulatorRequest, tag="library"):
    """Install another version of the GPUs' library; it fits once the driver of that version is loaded."""

    version: str

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.gpus.driver.upgrade_library(self.version)
        return {}


class Clients(EmulatorRequest, tag="clients"):
    """Show the processes that have the GPUs' library open, and what they hold."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        return {"clients": [asdict(client) for client in node.gpus.driver.clients()]}


GPU_REQUESTS: Final[tuple[type[EmulatorRequest], ...]] = (
    Xid,
    SXid,
    RecoveryAction,
    CountEcc,
    Remap,
    NvLink,
    FabricRequest,
    Partition,
    EventsRequest,
    Unpopulated,
    DriverRequest,
    LibraryRequest,
    Clients,
)
