"""Which GPUs are reset together, as ``nvidia-smi --gpu-reset`` wants it.

    Hopper and later     each GPU by itself, with NVSwitches or without
    Ampere, Ada          by itself too, but all GPUs of the node where NVSwitches join them
    before Ampere        all GPUs that have NVLink; by itself without

NVIDIA lets the fabric manager reset a single A100 behind NVSwitches; its own remediation (NVSentinel)
leaves that out, and so does this. A GPU in MIG mode is reset as a whole. It resets nothing.
"""

from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls

LINKED: Final = "nvlink"
"""The group of all GPUs of the node that NVLink joins, by switches or from one to the other."""

_SWITCH: Final = pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH


def reset_group(name: str, calls: Calls, *, switches: bool) -> str:
    """The name that GPUs have in common which must be reset together, ``name`` for one by itself.

    ``switches``: PCI lists NVSwitches. "" where nobody can tell now. Raises as ``Calls.ask``.
    """
    architecture = calls.ask(pynvml.nvmlDeviceGetArchitecture)
    if architecture == pynvml.NVML_DEVICE_ARCH_UNKNOWN:
        architecture = None
    if architecture is not None and architecture >= pynvml.NVML_DEVICE_ARCH_HOPPER:
        return name
    partners = _partners(calls)
    if partners is None:
        return ""
    if _SWITCH in partners or (partners and switches):
        return LINKED
    if architecture is not None and architecture >= pynvml.NVML_DEVICE_ARCH_AMPERE:
        return name
    return LINKED if partners else name


def _partners(calls: Calls) -> set[int] | None:
    """What the GPU's NVLinks lead to; none without NVLink, None where it has links that do not say it."""
    links = [
        link
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS)
        if calls.ask(pynvml.nvmlDeviceGetNvLinkState, link, variant=(link,)) is not None
    ]
    if not links:
        return set()
    asked = (calls.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, link, variant=(link,)) for link in links)
    return {partner for partner in asked if partner is not None} or None
