"""What can be made happen to NVIDIA's driver and library on an emulated node, and who has them open."""

from dataclasses import dataclass
from pathlib import Path

from nodeagent.emulator.nvidia.chips import OLDER, set_driver
from nodeagent.emulator.shared.ending import has_ended
from nodeagent.emulator.shared.fields import FieldError
from nodeagent.emulator.shared.state import State
from nodeagent.emulator.shared.symbols import take_away


@dataclass(frozen=True, slots=True)
class Client:
    """A process that has the library open, and what it holds: a reset has to wait for each of them."""

    process_id: int
    inits: int
    handles: int
    event_sets: int


class Driver:
    """``gpus.driver`` of an ``EmulatedNode``."""

    def __init__(self, state: State, library: Path) -> None:
        """``library`` is the double that lies beside the state."""
        self._state = state
        self._library = library

    def unload(self) -> None:
        """The kernel module is gone: DRIVER_NOT_LOADED."""
        self._state.node.gpu_driver_loaded = 0
        with self._state.locked():
            self._state.wake_waiters()

    def load(self, version: str = "") -> None:
        """The kernel module is loaded, of another version where given. Who had it open has to start again."""
        node = self._state.node
        if version:
            set_driver(self._state, version, int(node.gpu_cuda_version))
        node.gpu_driver_load += 1
        node.gpu_driver_loaded = 1
        with self._state.locked():
            self._state.wake_waiters()

    def upgrade_library(self, version: str) -> None:
        """Another version is installed. Processes that loaded the library keep theirs; new ones get this one.

        A library answers LIB_RM_VERSION_MISMATCH to whoever opens it while the kernel module is of another.
        """
        self._state.node.gpu_library_version = version.encode()

    def make_older(self, branch: str) -> None:
        """Driver and library are of an older branch: without what NVML has only since. Raises ``FieldError``.

        To be called before anybody loads the library. ``branch`` is one of ``OLDER``.
        """
        if branch not in OLDER:
            raise FieldError(f"{branch}: the older branches are {', '.join(OLDER)}")
        older = OLDER[branch]
        take_away(self._library, older["without"])
        node = self._state.node
        node.gpu_field_end, node.gpu_fabric_revision = older["field_end"], older["fabric_revision"]
        set_driver(self._state, older["version"], older["cuda_version"])
        node.gpu_library_version = older["version"].encode()
        for chip in self._state.chips[: node.chip_count]:
            chip.gpu_event_types &= older["event_types"]

    def clients(self) -> list[Client]:
        """The processes that have the library open now."""
        node = self._state.node
        found: list[Client] = []
        for place, process_id in enumerate(node.gpu_client_pids):
            if process_id and not has_ended(process_id):
                counts = (node.gpu_client_inits, node.gpu_client_handles, node.gpu_client_event_sets)
                found.append(Client(process_id, *(int(count[place]) for count in counts)))
        return found
