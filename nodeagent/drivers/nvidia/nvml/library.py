"""Loads NVML, and reports clearly why it cannot be loaded.

A configured library is loaded by its path first. It has the SONAME that pynvml looks for, so pynvml then
finds that one; the same holds for a driver in a root of its own. pynvml never unloads a library: a process
that should use another version must end. If the library is missing but the kernel's driver lists GPUs, the
source itself is broken.
"""

import ctypes
from collections.abc import Collection
from pathlib import Path
from typing import Final

import pynvml

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.nvidia.nvml.calls import name_of
from nodeagent.drivers.shared.denied import denials
from nodeagent.wire import Missing

SONAME: Final = "libnvidia-ml.so.1"

FOLDERS: Final = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
"""Where it is below the driver's root, as NVIDIA's k8s-device-plugin looks for it (``tryResolveLibrary``)."""

CONTAINERS_ROOT: Final = Path("/run/nvidia/driver")
"""Where NVIDIA's GPU operator mounts the root of a driver that runs in a container."""

DRIVER_NOT_LOADED: Final = "NV_DRIVER_NOT_LOADED"
VERSION_MISMATCH: Final = "NV_VERSION_MISMATCH"

_WHY: Final[dict[int, str]] = {
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA kernel driver is not loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "the NVIDIA library and the loaded kernel driver are of different versions: "
        "reload the driver, or reboot the node"
    ),
    pynvml.NVML_ERROR_UNINITIALIZED: "the NVIDIA driver was unloaded or reloaded while this process used it",
}
CODES: Final[dict[int, str]] = {
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: VERSION_MISMATCH,
}
"""The code of the node's fault, by NVML's answer."""

_DEVICE_FILES: Final = (Path("/dev/nvidiactl"), Path("/dev/nvidia0"))


def load(
    path: str, expected: Collection[str], taken: Collection[str] | None = None, driver_root: str = ""
) -> None:
    """Load and initialise it. ``expected`` are the GPUs that PCI lists, ``taken`` those that the kernel's
    driver lists; it is looked for below ``driver_root`` where no ``path`` is given. Raises ``Unavailable``.

    It is absent, which is in order, where the library or the driver is not there and neither is a GPU.
    """
    here = {*expected, *(taken or ())}
    wanted = path or _below(driver_root)
    try:
        ctypes.CDLL(wanted)
    except OSError as error:
        reason = f"cannot load the NVIDIA library {wanted}: {error}{_though(here)}"
        if taken:
            reason += f"; the kernel's driver lists {len(taken)} of them: drivers.nvidia is set up wrongly"
        if not (path or driver_root) and CONTAINERS_ROOT.is_dir():
            reason += (
                f'; a driver in a container is there: set drivers.nvidia.driver_root = "{CONTAINERS_ROOT}"'
            )
        lost = sorted(set(expected) - set(taken or ()))
        missing = [Missing(device=address, reason=reason) for address in lost]
        raise Unavailable(reason, absent=not here, missing=missing) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise not_opened(error.value, expected, taken, driver_root) from None


def not_opened(
    number: int, expected: Collection[str], taken: Collection[str] | None, driver_root: str
) -> Unavailable:
    """NVML's answer as it begins. It takes device files that are missing for a driver that is not loaded.

    A driver in a container has them only in the container's /dev, which is below its root; NVML tries to make
    them, which the unit may not. The driver is loaded all the same, and the GPUs work in containers.
    (NVIDIA/gpu-operator issues 1741 and 425; k8s-device-plugin looks below the root too: ``getDevRoot``.)
    """
    lies = _lies_below(driver_root)
    if number != pynvml.NVML_ERROR_DRIVER_NOT_LOADED or not (taken or lies):
        return unavailable(number, expected)
    gpus = f"lists {len(taken)} GPUs" if taken else "is loaded"
    why = lies or denials(_DEVICE_FILES[:1]) or name_of(number)
    return Unavailable(f"the kernel's driver {gpus}, and NVML does not reach it: {why}", errno=number)


def _lies_below(driver_root: str) -> str:
    """Where the device files are and what is to be done, where they lie below the driver's root only."""
    file = _DEVICE_FILES[0]
    below = Path(driver_root or "/", *file.parts[1:])
    if file.exists() or not below.exists():
        return ""
    return (
        f"it looks for {file}, which lies in {below.parent} only: as root, cp -a {below.parent}/nvidia* "
        f"{file.parent}"
    )


def _below(driver_root: str) -> str:
    if driver_root in ("", "/"):
        return SONAME
    found = (Path(driver_root, folder, SONAME) for folder in FOLDERS)
    return str(next((file for file in found if file.exists()), Path(driver_root, SONAME)))


def unavailable(number: int, expected: Collection[str], shown: Collection[str] = ()) -> Unavailable:
    """NVML's answer as the reason why the source is not to be had. ``expected`` are the GPUs that PCI lists,
    ``shown`` those that NVML has listed to this process.
    """
    absent = number == pynvml.NVML_ERROR_DRIVER_NOT_LOADED and not (expected or shown)
    why = _WHY.get(number, f"NVML cannot be used: it answers {name_of(number)}")
    if number not in _WHY and (denied := denials(_DEVICE_FILES)):
        # What the rights of a file deny is NO_PERMISSION; what a control group denies, only UNKNOWN.
        why += f"; {denied}"
    code = "" if absent else CODES.get(number, "")
    return Unavailable(why + _though(expected, shown), errno=number, absent=absent, code=code)


def _though(expected: Collection[str], shown: Collection[str] = ()) -> str:
    """Which of PCI and NVML has listed GPUs."""
    if expected:
        return f"; PCI lists {_gpus(expected)}"
    return f"; NVML has listed {_gpus(shown)}, PCI none" if shown else ""


def _gpus(addresses: Collection[str]) -> str:
    return f"{len(addresses)} GPU{'s' if len(addresses) > 1 else ''}"
