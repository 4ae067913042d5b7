"""What a described GPU is, field by field, from the rows of ``gpu_values.toml``.

It knows no product: a row names the fields that a product has; what no row names reads as "not supported".
"""

import ctypes
import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator.shared.layout import LAYOUT, LIMITS
from nodeagent.emulator.shared.state import State

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


def fill_gpus(state: State, first: int, count: int, product: Mapping[str, Any]) -> None:
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


def set_driver(state: State, version: str, cuda_version: int) -> None:
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
