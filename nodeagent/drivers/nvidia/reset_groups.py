"""Which GPUs are reset together, as ``nvidia-smi --gpu-reset`` wants it.

    Hopper and later     each GPU by itself, with NVSwitches or without
    Ampere, Ada          by itself too, but all GPUs of the node where NVSwitches join them
    before Ampere        all GPUs that have NVLink; by itself without

The manual of nvidia-smi has it so, but for Ampere behind NVSwitches: there it lets the fabric manager
reset one alone, while NVIDIA's own remediation (NVSentinel) leaves that out, and so does this. A GPU in
MIG mode is reset as a whole. It resets nothing.
"""

from collections.abc import Mapping
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls

LINKED: Final = "nvlink"
"""The group of all GPUs of the node that NVLink joins, by switches or from one to the other."""

_NOBODY: Final = (None, pynvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN)


def reset_group(name: str, calls: Calls, *, switches: bool) -> str:
    """The name that GPUs have in common which must be reset together, ``name`` for one by itself.

    By the links as they are now: one that is down does not say where it led. ``switches``: PCI lists
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
    } - {*_NOBODY}
    if pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH in partners or (switches and links):
        return LINKED
    if architecture is not None and architecture >= pynvml.NVML_DEVICE_ARCH_AMPERE:
        return name
    return LINKED if partners else name


def settled(gpus: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The group of each of all GPUs of the node, from their attributes; "" where nothing says it.

    A GPU whose links are down says that it is alone, and one that hangs says nothing: GPUs of one product
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
