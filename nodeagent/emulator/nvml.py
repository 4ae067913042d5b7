"""NVIDIA's library on an emulated node: the values of a GPU, the state of the driver, and a front for any
library.

The values of a GPU are rows of ``gpu_values.toml``. A field that no row sets reads as "not supported".

The front is a library before another ``libnvidia-ml.so.1``, real or emulated. It changes single answers.

    directory/libnvidia-ml.so.1    the front, which a program loads
    directory/library              the path of the library behind it
    directory/answers              one change a line; read again while programs use it

Each line names a function of NVML and a GPU by its index. ``lines.c`` defines the lines.
"""

import ctypes
import hashlib
import os
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator import build
from nodeagent.emulator.layout import LAYOUT, LIMITS, FieldError, take_away
from nodeagent.emulator.processes import has_ended
from nodeagent.emulator.state import EmulatorState

VALUES: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "gpu_values.toml").read_text()
)
OLDER: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "gpu_libraries.toml").read_text()
)
"""Branch of an older driver -> what its library lacks."""
DRIVER_VERSION: Final = "615.71"
CUDA_VERSION: Final = 13000
"""Those of the pynvml that this was written for."""
FIELD_END: Final = 308
"""One more than its highest field id."""
FABRIC_REVISION: Final = 3

DRIVER_NOT_LOADED: Final = 9
UNKNOWN: Final = 999

_VENDOR: Final = 0x10DE
_KINDS: Final[Mapping[str, Any]] = {name: kind for name, kind, *_ in LAYOUT.parts["CHIP"]._fields_}
_NOT_GPU_FIELDS: Final = ("pci_product", "pci_subproduct")
_NOT_FIELDS: Final = ("like", "pci_buses")


def values_of(row: str) -> dict[str, Any]:
    """The values of a row, laid over those of the rows that it is like."""
    own = VALUES[row]
    return {**(values_of(own["like"]) if "like" in own else {}), **own}


def unsupported(kind: type[Any]) -> int:
    """What a field of this C type holds where the product has no such thing."""
    bits = 8 * ctypes.sizeof(kind)
    return -(1 << (bits - 1)) if kind(-1).value < 0 else (1 << bits) - 1


def fill_gpus(state: EmulatorState, first: int, count: int, product: Mapping[str, Any]) -> None:
    """Describes ``count`` GPUs of a product from chip ``first`` on. Raises ``ValueError`` for too many."""
    values = values_of(product["values"])
    if count > len(values["pci_buses"]):
        raise ValueError(f"a node has room for at most {len(values['pci_buses'])} of this product")
    node = state.node
    node.gpu_driver_loaded, node.gpu_driver_load, node.gpu_wait_answers_lost = 1, 1, 1
    node.gpu_unloaded_answer, node.gpu_reloaded_answer = DRIVER_NOT_LOADED, UNKNOWN
    node.gpu_field_end, node.gpu_fabric_revision = FIELD_END, FABRIC_REVISION
    for number in range(count):
        _fill(state.chips[first + number], number, values)
    set_driver(state, DRIVER_VERSION, CUDA_VERSION)
    node.gpu_library_version = DRIVER_VERSION.encode()


def set_driver(state: EmulatorState, version: str, cuda_version: int) -> None:
    """The kernel module, and the firmware that it loads into the GPUs that run one, are of this version."""
    state.node.gpu_driver_version, state.node.gpu_cuda_version = version.encode(), cuda_version
    for chip in state.chips[: LIMITS["CHIPS"]]:
        if chip.kind == LIMITS["KIND_GPU"] and chip.gpu_gsp_mode == 1:
            chip.gpu_gsp_version = version.encode()


def _fill(chip: Any, number: int, values: Mapping[str, Any]) -> None:
    _clear(chip)
    chip.kind, chip.present, chip.ready = LIMITS["KIND_GPU"], 1, 1
    chip.pci_bus, chip.pci_vendor, chip.pci_subvendor = values["pci_buses"][number], _VENDOR, _VENDOR
    chip.gpu_minor_number = number
    chip.gpu_board_id = chip.pci_bus << 8
    chip.gpu_module_id = number + 1
    chip.gpu_irq = 100 + number
    for name, value in values.items():
        if name not in _NOT_FIELDS:
            _set(chip, name if name in _NOT_GPU_FIELDS else f"gpu_{name}", value, int(values["nvlink_count"]))
    set_gpu_identity(chip, 0x1000 + number)


def _clear(chip: Any) -> None:
    for name, kind in _KINDS.items():
        if not name.startswith("gpu_"):
            continue
        if not issubclass(kind, ctypes.Array):
            setattr(chip, name, unsupported(kind))
        elif kind._type_ is not ctypes.c_char:
            getattr(chip, name)[:] = [unsupported(kind._type_)] * kind._length_


def _set(chip: Any, name: str, value: Any, links: int) -> None:
    kind = _KINDS[name]
    if isinstance(value, str):
        setattr(chip, name, value.encode())
    elif not issubclass(kind, ctypes.Array):
        setattr(chip, name, value)
    else:
        _set_places(getattr(chip, name), value, links)


def _set_places(array: Any, value: Any, links: int) -> None:
    wanted: Sequence[int] = value if isinstance(value, list) else [value] * _filled(len(array), links)
    absent = unsupported(array._type_)
    is_signed = array._type_(-1).value < 0
    for place, number in enumerate(wanted):
        array[place] = absent if number == -1 and not is_signed else number


def _filled(length: int, links: int) -> int:
    return links if length == LIMITS["GPU_LINKS"] else length


def set_gpu_identity(chip: Any, seed: int) -> None:
    """Gives the GPU another UUID and serial: those of no other seed."""
    digits = hashlib.sha256(f"gpu {seed}".encode()).hexdigest()
    uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-{digits[18:30]}"
    chip.gpu_uuid = f"GPU-{uuid}".encode()
    chip.serial = f"16{seed:011d}".encode()


@dataclass(frozen=True, slots=True)
class NvmlClient:
    """A process that has the library open, and what it holds: a reset has to wait for each of them."""

    process_id: int
    inits: int
    handles: int
    event_sets: int


class EmulatedDriver:
    """``gpus.driver`` of an ``EmulatedNode``."""

    def __init__(self, state: EmulatorState, library: Path) -> None:
        """``library`` is the emulated library next to the state."""
        self._state = state
        self._library = library

    def unload(self) -> None:
        """The kernel module is gone: DRIVER_NOT_LOADED."""
        self._state.node.gpu_driver_loaded = 0
        with self._state.locked():
            self._state.wake_waiters()

    def load(self, version: str = "") -> None:
        """The kernel module is loaded, of another version where given. Processes that had it open have to
        start again.
        """
        node = self._state.node
        if version:
            set_driver(self._state, version, int(node.gpu_cuda_version))
        node.gpu_driver_load += 1
        node.gpu_driver_loaded = 1
        with self._state.locked():
            self._state.wake_waiters()

    def upgrade_library(self, version: str) -> None:
        """Another version is installed. Processes that loaded the library keep theirs; new ones get this one.

        A library answers LIB_RM_VERSION_MISMATCH to each program that opens it while the kernel module is of
        another.
        """
        self._state.node.gpu_library_version = version.encode()

    def make_older(self, branch: str) -> None:
        """Driver and library are of an older branch: without what NVML has only since. Raises ``FieldError``.

        To be called before a process loads the library. ``branch`` is one of ``OLDER``.
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

    def clients(self) -> list[NvmlClient]:
        """The processes that have the library open now."""
        node = self._state.node
        found: list[NvmlClient] = []
        for place, process_id in enumerate(node.gpu_client_pids):
            if process_id and not has_ended(process_id):
                counts = (node.gpu_client_inits, node.gpu_client_handles, node.gpu_client_event_sets)
                found.append(NvmlClient(process_id, *(int(count[place]) for count in counts)))
        return found


LIBRARY: Final = "libnvml-front.so"
FRONT: Final = "libnvidia-ml.so.1"
ANSWERS: Final = "answers"
BEHIND: Final = "library"
MAX_BYTES: Final = 65_536


class Front:
    """That of a directory. ``path`` is the library to load."""

    def __init__(self, directory: Path) -> None:
        """Raises ``FieldError`` where there is none."""
        self.directory = directory
        self.path = directory / FRONT
        if not (self.path.exists() and (directory / BEHIND).exists()):
            raise FieldError(f"{directory}: no front is there; make one with nodeagent emulator front start")
        self._check = ctypes.CDLL(str(build.build(names=[LIBRARY])[0])).front_check
        self._check.restype = ctypes.c_char_p

    @classmethod
    def create(cls, directory: Path, library: Path) -> "Front":
        """One in front of ``library``, which changes nothing yet. Raises ``FieldError``, ``BuildFailed`` and
        ``OSError``.
        """
        behind = library.absolute()
        if not behind.is_file():
            raise FieldError(f"{library}: no such library")
        directory.mkdir(parents=True, exist_ok=True)
        if behind.resolve() == (directory / FRONT).resolve():
            raise FieldError(f"{library}: it is the front itself; name the library that is to be behind it")
        (built,) = build.build(names=[LIBRARY])
        # A library that is mapped somewhere must not change under it: a new file, not new bytes.
        fresh = directory / f".{FRONT}"
        shutil.copyfile(built, fresh)
        fresh.replace(directory / FRONT)
        _write(directory / BEHIND, f"{behind}\n")
        _write(directory / ANSWERS, "")
        return cls(directory)

    @property
    def lines(self) -> list[str]:
        """Those in force, as they were written."""
        return (self.directory / ANSWERS).read_text().splitlines()

    def change(self, lines: Iterable[str]) -> None:
        """From now on these. Raises ``FieldError`` that names the line that is wrong; those before stay
        then.
        """
        text = "".join(f"{line}\n" for each in lines for line in each.splitlines())
        if len(text.encode()) >= MAX_BYTES:
            raise FieldError(f"answers: less than {MAX_BYTES} bytes are right, not {len(text.encode())}")
        if "\0" in text:
            raise FieldError("answers: text is right, not a zero byte")
        if wrong := self._check(text.encode()).decode(errors="replace"):
            raise FieldError(f"answers: {wrong}")
        _write(self.directory / ANSWERS, text)

    def add(self, lines: Iterable[str]) -> None:
        """These too; where two lines are about one answer, the first is in force."""
        self.change([*lines, *self.lines])

    def clear(self) -> None:
        """Nothing is changed any more."""
        self.change([])


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)
