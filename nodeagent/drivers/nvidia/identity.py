"""The identity of a GPU: UUID, PCI address, attributes, MIG devices, and with which GPUs it is reset.

The name is ``gpu`` and NVML's index. A UUID or an address of another form counts as unreadable, never as
another part. Programs know a MIG device by its UUID alone (CUDA_VISIBLE_DEVICES takes it). No MIG device is
watched here.

The groups of resets are those of ``nvidia-smi --gpu-reset``:

    Hopper and later     each GPU alone, with NVSwitches or without
    Ampere, Ada          alone too, but all GPUs of the node if NVSwitches join them
    before Ampere        all GPUs that have NVLink; alone without

This is the manual of nvidia-smi, except for Ampere behind NVSwitches: there the manual lets the fabric
manager reset one GPU alone. NVIDIA's own remediation (NVSentinel) does not do that, and neither does this. A
GPU in MIG mode is reset as a whole. Nothing is reset here.
"""

import ctypes
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pynvml

from nodeagent.core.model import Kind
from nodeagent.drivers.nvidia.nvml.calls import Calls
from nodeagent.drivers.shared.pci import PciFunction, normal
from nodeagent.wire import Device

NONE: Final = "none"

_UUID: Final = re.compile(r"MIG-[!-+\--~]{1,80}")
"""``MIG-`` and a UUID, or from older drivers the GPU's own and two numbers; no comma or blank in either."""


def mig_devices(handle: Any) -> str:
    """``gi1=MIG-...,gi2=MIG-...``, in NVML's order; ``NONE`` where there is none, "" where it cannot be read.

    Of a GPU instance that is divided further each compute instance is a MIG device.
    """
    try:
        most = pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        parts = [_part(handle, index) for index in range(most)]
        found = [_described(part) for part in parts if part is not None]
    except (pynvml.NVMLError, UnicodeDecodeError):
        return ""
    return ",".join(filter(None, found)) or NONE


def _part(handle: Any, index: int) -> Any:
    """None where no MIG device has this index: they are not numbered without gaps."""
    try:
        return pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT):
            return None
        raise


def _described(part: Any) -> str:
    uuid = str(pynvml.nvmlDeviceGetUUID(part)).strip()
    return f"gi{pynvml.nvmlDeviceGetGpuInstanceId(part)}={uuid}" if _UUID.fullmatch(uuid) else ""


LINKED: Final = "nvlink"
"""The group of all GPUs of the node that NVLink joins, by switches or from one to the other."""

_NO_PEER: Final = (None, pynvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN)


def reset_group(name: str, calls: Calls, *, switches: bool) -> str:
    """The name that GPUs have in common which must be reset together, ``name`` for one by itself.

    By the links as they are now: one that is down does not show where it led. ``switches``: PCI lists
    NVSwitches. Raises as ``Calls.ask``.
    """
    architecture = calls.ask(pynvml.nvmlDeviceGetArchitecture)
    if architecture == pynvml.NVML_DEVICE_ARCH_UNKNOWN:
        architecture = None
    if architecture is not None and architecture >= pynvml.NVML_DEVICE_ARCH_HOPPER:
        return name
    links = [
        link
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS)
        if calls.ask(pynvml.nvmlDeviceGetNvLinkState, link, variant=(link,)) is not None
    ]
    partners = {
        calls.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, link, variant=(link,)) for link in links
    } - {*_NO_PEER}
    if pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH in partners or (switches and links):
        return LINKED
    if architecture is not None and architecture >= pynvml.NVML_DEVICE_ARCH_AMPERE:
        return name
    return LINKED if partners else name


def settled(gpus: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The group of each of all GPUs of the node, from their attributes; "" if unknown.

    A GPU whose links are down seems to be alone, and one that hangs reports nothing: GPUs of one product
    are joined alike, and a machine has one product.
    """
    known = {name: attributes["group"] for name, attributes in gpus.items() if "group" in attributes}
    linked = {name for name, group in known.items() if group == LINKED}
    products = {gpus[name]["product"] for name in linked if "product" in gpus[name]}

    def group_of(name: str, product: str) -> str:
        if name in linked or product in products:
            return LINKED
        if name in known:
            return known[name]
        return LINKED if linked else name if known else ""

    return {name: group_of(name, attributes.get("product", "")) for name, attributes in gpus.items()}


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
    mode_name = _VIRTUALIZATION.get(mode, str(mode))
    attributes = {"virtualization": mode_name}
    return {**attributes, "no_reset": OF_THE_HOST} if mode_name == _SHARE_OF_A_GUEST else attributes


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
