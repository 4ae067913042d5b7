"""The NVLink fabric as a GPU sees it: whether it has joined, and what is wrong with its part of it.

The health mask is decoded field by field: a mask that is not zero is no fault by itself. Where tenants share
the NVSwitches, a GPU stays in progress until a partition of the fabric with it is activated: no fault either.
"""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls, Readings, asks

NOT_READY: Final = "NV_FABRIC_NOT_READY"
FAILED: Final = "NV_FABRIC_FAILED"
UNHEALTHY: Final = "NV_FABRIC_UNHEALTHY"
MISCONFIGURED: Final = "NV_FABRIC_MISCONFIGURED"
LIMITED: Final = "NV_FABRIC_LIMITED"
UNSUPPORTED: Final = "NV_FABRIC_UNSUPPORTED"

_TRUE: Final = 1
_FALSE: Final = 2
_SUMMARIES: Final[Mapping[int, str]] = {2: UNHEALTHY, 3: LIMITED}
"""What the summary says is wrong; asked only where the mask does not say what."""

FLAGS: Final[Mapping[str, tuple[int, int]]] = {
    "NV_FABRIC_DEGRADED_BANDWIDTH": (0, _TRUE),
    "NV_FABRIC_ROUTE_RECOVERY": (2, _TRUE),
    "NV_FABRIC_ROUTE_UNHEALTHY": (4, _TRUE),
    "NV_FABRIC_ACCESS_TIMEOUT": (6, _TRUE),
    "NV_FABRIC_MANAGER_DISCONNECTED": (14, _FALSE),
}
"""Code -> where its two bits begin in the mask, and the value that is the fault."""

FABRIC_CODES: Final = frozenset({NOT_READY, FAILED, UNHEALTHY, MISCONFIGURED, LIMITED, UNSUPPORTED, *FLAGS})

_CONFIGURATION_SHIFT: Final = 8
_CONFIGURATION_GOOD: Final = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """``mask`` and ``summary`` are 0 where the driver's version of the call does not give them."""

    state: int
    status: int
    clique: int
    mask: int = 0
    summary: int = 0


def ask(calls: Calls) -> Fabric | None:
    """What the driver says of it, None where it does not. Raises as ``Calls.ask``."""
    fabric: Fabric | None = calls.newest((_v3, _of_struct), (_v2, _of_struct), (_v1, _of_struct))
    return fabric


def is_joined(fabric: Fabric | None) -> bool:
    """Whether the GPU is registered with switches, to which its links must lead then."""
    return fabric is not None and fabric.state == pynvml.NVML_GPU_FABRIC_STATE_COMPLETED


def codes(
    fabric: Fabric | None,
    readings: Readings,
    is_shared: Callable[[], bool],
    has_switches: Callable[[], bool],
) -> list[str] | None:
    """The codes active by it, None where nothing is known. ``is_shared``: tenants share the switches;
    ``has_switches``: links of the GPU, or of others of its product, lead to some.

    The driver refuses the question of what was made before Hopper. Later ones it does not register where the
    board is none with switches: on others that is wrong (``gpuFabricProbeIsSupported`` and its caller in
    subdevice_ctrl_gpu_kernel.c of NVIDIA's open modules).
    """
    if fabric is None:
        return None
    if fabric.state == pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
        return [UNSUPPORTED] if has_switches() else []
    readings.put("fabric_state", fabric.state, most=3)
    readings.put("fabric_clique", fabric.clique, most=2.0**32)
    readings.put("fabric_health", fabric.summary, most=3)
    if fabric.state == pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS and is_shared():
        return []
    return faults(fabric)


def faults(fabric: Fabric) -> list[str]:
    """What the fabric's state says, as codes."""
    if fabric.state != pynvml.NVML_GPU_FABRIC_STATE_COMPLETED:
        return [NOT_READY]
    if fabric.status != pynvml.NVML_SUCCESS:
        return [FAILED]
    active = [code for code, (shift, fault) in FLAGS.items() if fabric.mask >> shift & 0x3 == fault]
    if fabric.mask >> _CONFIGURATION_SHIFT & 0xF not in _CONFIGURATION_GOOD:
        active.append(MISCONFIGURED)
    if not active and fabric.summary in _SUMMARIES:
        active.append(_SUMMARIES[fabric.summary])
    return active


@asks("nvmlDeviceGetGpuFabricInfoV/3")
def _v3(handle: Any) -> Any:
    info = pynvml.c_nvmlGpuFabricInfo_v3_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    return info


@asks("nvmlDeviceGetGpuFabricInfoV/2")
def _v2(handle: Any) -> Any:
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    return info


@asks("nvmlDeviceGetGpuFabricInfo")
def _v1(handle: Any) -> Any:
    info = pynvml.c_nvmlGpuFabricInfo_t()
    pynvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
    return info


def _of_struct(info: Any) -> Fabric:
    return Fabric(
        state=info.state,
        status=info.status,
        clique=info.cliqueId,
        mask=getattr(info, "healthMask", 0),
        summary=getattr(info, "healthSummary", 0),
    )
