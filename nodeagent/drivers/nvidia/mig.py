"""The MIG devices of a GPU that is divided: the GPU instance of each, and the UUID by which programs name it.

Programs know no other name: CUDA_VISIBLE_DEVICES takes it. It watches none of them.
"""

import re
from typing import Any, Final

import pynvml

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
