"""Who a GPU is: its UUID, where it sits, and what an operator wants to know of the part.

Its name is ``gpu`` and NVML's index. A UUID or an address that does not look like one is taken as
unreadable, never as another part. It watches nothing.
"""

import ctypes
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pynvml

from nodeagent.core.model import Kind
from nodeagent.drivers.nvidia.calls import Calls
from nodeagent.drivers.nvidia.mig import mig_devices
from nodeagent.drivers.nvidia.reset_groups import reset_group
from nodeagent.drivers.shared.pci import PciFunction, normal
from nodeagent.wire import Device

VENDOR: Final = "nvidia"
UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_UNPRINTABLE: Final = re.compile(r"[^ -~]")
_MAX_TEXT: Final = 128
_MIG_MODES: Final = {0: "disabled", 1: "enabled"}
_WHOLE_OF_A_GUEST: Final = "passthrough"
_SHARE_OF_A_GUEST: Final = "vgpu"
_VIRTUALIZATION: Final[Mapping[int, str]] = {
    pynvml.NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH: _WHOLE_OF_A_GUEST,
    pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU: _SHARE_OF_A_GUEST,
    pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU: "host_vgpu",
    pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA: "host_vsga",
}
"""``nvmlGpuVirtualizationMode_t`` of nvml.h. In a guest that has a share of a GPU it is "vgpu"; one that is
passed through as a whole is reset by its guest like any other.
"""

OF_THE_HOST: Final = "it is a virtual GPU of this guest (vGPU), and only its host can reset it"

_TEXTS: Final[Mapping[str, Callable[..., Any]]] = {
    "product": pynvml.nvmlDeviceGetName,
    "serial": pynvml.nvmlDeviceGetSerial,
    "board": pynvml.nvmlDeviceGetBoardPartNumber,
    "firmware": pynvml.nvmlDeviceGetVbiosVersion,
    "inforom": pynvml.nvmlDeviceGetInforomImageVersion,
    "gsp_firmware": pynvml.nvmlDeviceGetGspFirmwareVersion,
}
_NUMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    "minor": pynvml.nvmlDeviceGetMinorNumber,
    "board_id": pynvml.nvmlDeviceGetBoardId,
}


def name_of(index: int) -> str:
    return f"gpu{index}"


def unread(index: int) -> Device:
    """A GPU of which nothing is known but that it is listed."""
    return Device(device=name_of(index), kind=Kind.CHIP, vendor=VENDOR)


def uuid(calls: Calls) -> str:
    """The GPU's own id, "" where it cannot be read. Raises as ``Calls.ask``."""
    answered = calls.ask(pynvml.nvmlDeviceGetUUID)
    if answered is None:
        return ""
    text = normal_uuid(str(answered))
    if not text:
        calls.refused += 1
    return text


def normal_uuid(text: str) -> str:
    """As it is compared: upper case in the hexadecimal part would make another part of it. "": it is none."""
    text = text.strip()
    text = text[:4] + text[4:].lower()
    return text if UUID.fullmatch(text) else ""


def describe(index: int, calls: Calls, pci: Mapping[str, PciFunction], *, switches: bool) -> Device:
    """All of it; ``pci`` are the functions by address, for what is above them. Raises as ``Calls.ask``.

    ``switches``: PCI lists NVSwitches.
    """
    attributes: dict[str, str] = {}
    address = _address(calls)
    if address:
        attributes["pci"] = address
        if address in pci and pci[address].upstream:
            attributes["upstream"] = ",".join(pci[address].upstream)
    for name, call in _TEXTS.items():
        if text := _printable(calls.ask(call)):
            attributes[name] = text
    for name, call in _NUMBERS.items():
        if (number := calls.ask(call)) is not None:
            attributes[name] = str(number)
    # Without a variable of our own pynvml uses one that all threads share.
    module = calls.ask(pynvml.nvmlDeviceGetModuleId, ctypes.c_uint())
    if module is not None:
        attributes["slot"] = str(module)
    if (mig := calls.ask(pynvml.nvmlDeviceGetMigMode)) is not None:
        attributes["mig"] = _MIG_MODES.get(mig[0], str(mig[0]))
        if mig[0] and (devices := mig_devices(calls.handle)):
            attributes["mig_devices"] = devices
    attributes |= _virtualization(calls)
    attributes["group"] = reset_group(name_of(index), calls, switches=switches)
    return Device(
        device=name_of(index), kind=Kind.CHIP, vendor=VENDOR, identity=uuid(calls), attributes=attributes
    )


def _virtualization(calls: Calls) -> Mapping[str, str]:
    mode = calls.ask(pynvml.nvmlDeviceGetVirtualizationMode)
    if mode is None or mode == pynvml.NVML_GPU_VIRTUALIZATION_MODE_NONE:
        return {}
    word = _VIRTUALIZATION.get(mode, str(mode))
    attributes = {"virtualization": word}
    return {**attributes, "no_reset": OF_THE_HOST} if word == _SHARE_OF_A_GUEST else attributes


def is_in_guest(device: Device) -> bool:
    """Whether it is used in a virtual machine, which shows it in a slot of its own making."""
    return device.attributes.get("virtualization") in (_WHOLE_OF_A_GUEST, _SHARE_OF_A_GUEST)


def versions() -> Mapping[str, str]:
    """The versions of the driver and its library: the same for every GPU of the node. Raises
    ``pynvml.NVMLError``.
    """
    return {
        "driver": _printable(pynvml.nvmlSystemGetDriverVersion()),
        "library": _printable(pynvml.nvmlSystemGetNVMLVersion()),
    }


def _address(calls: Calls) -> str:
    info = calls.ask(pynvml.nvmlDeviceGetPciInfo_v3)
    if info is None:
        return ""
    try:
        return normal(info.busId)
    except (ValueError, UnicodeDecodeError):
        calls.refused += 1
        return ""


def _printable(text: Any) -> str:
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return "" if text is None else _UNPRINTABLE.sub("?", str(text)).strip()[:_MAX_TEXT]
