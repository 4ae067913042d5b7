"""The NVLink fabric: whether a GPU has joined it, the fabric manager, and the IMEX service.

**The GPU.** Its health mask is decoded field by field: a mask other than zero is no fault by itself. Where
tenants share the NVSwitches, a GPU stays in progress until its partition of the fabric is activated: no fault
either.

**The fabric manager** must run on a node with NVSwitches. Without it, GPUs that have joined the fabric look
well, but no new program can use them together. Neither NVML nor the kernel log shows this. So its process is
looked for, which finds it as a service and in a container. Nodes whose switches are managed elsewhere (NVL72,
a guest of a shared fabric) have no switches and are not checked. Its configuration shows whether tenants
share the switches.

Its log is not read. What gpud takes from it (components/accelerator/nvidia/fabric-manager/log_matcher.go) is
reported another way: errors of switches are SXids in the kernel log; an unknown topology ends the process,
which is then missed; a multicast team without a GPU is the request of one program. NVML reports what a fabric
with switches behind network ports does to a GPU.

**IMEX** lets GPUs of several nodes share memory (GB200 NVL72 and similar). It is asked as in NVIDIA's DCGM
(dcgmlib/src/DcgmImexManager.cpp): ``nvidia-imex-ctl -q`` prints the state of this node's daemon, ``-N -j``
that of the domain of all nodes. A node without the command, without a configuration or without the daemon has
no fault: where a job brings its own IMEX, as with NVIDIA's DRA driver for Kubernetes, an idle node has none
(docs/configuration/gpu-health-monitor.md of NVSentinel). An unknown answer is ignored. A thread of its own
asks, so that nothing waits for it.

Nothing is started here.
"""

import ctypes
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import pynvml

from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings, asks

NOT_READY: Final = "NV_FABRIC_NOT_READY"
FAILED: Final = "NV_FABRIC_FAILED"
UNHEALTHY: Final = "NV_FABRIC_UNHEALTHY"
MISCONFIGURED: Final = "NV_FABRIC_MISCONFIGURED"
LIMITED: Final = "NV_FABRIC_LIMITED"
UNSUPPORTED: Final = "NV_FABRIC_UNSUPPORTED"

_TRUE: Final = 1
_FALSE: Final = 2
_SUMMARIES: Final[Mapping[int, str]] = {2: UNHEALTHY, 3: LIMITED}
"""The faults of the summary; read only if the mask does not name them."""

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
class FabricCheck:
    """``mask`` and ``summary`` are 0 where the driver's version of the call does not give them."""

    state: int
    status: int
    clique: int
    mask: int = 0
    summary: int = 0


def ask(calls: Calls) -> FabricCheck | None:
    """The state that the driver reports, None if it reports none. Raises as ``Calls.ask``."""
    fabric: FabricCheck | None = calls.newest((_v3, _of_struct), (_v2, _of_struct), (_v1, _of_struct))
    return fabric


def is_joined(fabric: FabricCheck | None) -> bool:
    """Whether the GPU is registered with switches, to which its links must lead then."""
    return fabric is not None and fabric.state == pynvml.NVML_GPU_FABRIC_STATE_COMPLETED


def codes(
    fabric: FabricCheck | None,
    readings: GpuReadings,
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


def faults(fabric: FabricCheck) -> list[str]:
    """The state of the fabric, as codes."""
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


def _of_struct(info: Any) -> FabricCheck:
    return FabricCheck(
        state=info.state,
        status=info.status,
        clique=info.cliqueId,
        mask=getattr(info, "healthMask", 0),
        summary=getattr(info, "healthSummary", 0),
    )


MANAGER_DOWN: Final = "NV_FABRIC_MANAGER_DOWN"

LOOK_S: Final = 2.0
"""All processes are looked through this often while it is not found."""

PORTS_LIMIT_S: Final = 1.0
"""Ports that take longer to report their use are not waited for: they are no GPU's."""

_PROCESS: Final = "nv-fabricmanage"
"""The kernel keeps fifteen letters of a name."""

_KERNEL_THREADS: Final = "kthreadd"
"""Process 2, which is seen only with all processes of the node."""

_MANAGEMENT_PORT: Final = b"SW_MNG"
_MAX_VPD_BYTES: Final = 4096

_CONFIGURATION: Final = "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
"""Where none is named on its command line (Fabric Manager User Guide: Fabric Manager Config Options)."""

_OPTIONS: Final = ("-c", "--config")
_SHARED: Final = re.compile(r"^\s*FABRIC_MODE\s*=\s*[12]\s*$", re.MULTILINE)
"""Shared NVSwitch and vGPU multitenancy; 0 is bare metal or a guest that has all."""


class Manager:
    """The fabric manager of the node. ``look`` is called at every poll. ``driver_root`` is of a driver in a
    root of its own.
    """

    def __init__(self, procfs: Path, sysfs: Path, driver_root: str = "") -> None:
        self._procfs = procfs
        self._sysfs = sysfs
        self._driver_root = Path(driver_root or "/")
        self._shared: tuple[str, bool] = ("", False)
        self._behind_a_port = False
        self._ports: threading.Thread | None = None
        self._pid = ""
        self._looked_s = float("-inf")
        self._said = False

    def look(self, *, switches: bool) -> bool | None:
        """Whether it runs; None where none is needed, or it is unknown. ``switches``: PCI lists some."""
        if not (switches or self._is_behind_a_port()):
            return None
        if self._pid and _name(self._procfs / self._pid) == _PROCESS:
            return True
        if _name(self._procfs / "2") != _KERNEL_THREADS:
            self._say_that_it_sees_nothing()
            return None
        if self._pid or time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            self._pid = next((pid for pid in self._pids() if _name(self._procfs / pid) == _PROCESS), "")
        return bool(self._pid)

    def is_shared(self) -> bool:
        """Whether it lets tenants share the switches, as far as can be seen. From any thread."""
        pid = self._pid
        if self._shared[0] != pid or not pid:
            self._shared = (pid, _SHARED.search(self._configuration(pid)) is not None)
        return self._shared[1]

    def _configuration(self, pid: str) -> str:
        """The configuration of the process with this pid, "" for no process: in its own root, in the
        driver's, or in ours.
        """
        words = _text(self._procfs / pid / "cmdline").split("\0") if pid else []
        named = [after for word, after in pairwise(words) if word in _OPTIONS]
        path = (named or [_CONFIGURATION])[0].lstrip("/")
        roots = [self._procfs / pid / "root"] if pid else []
        return next((text for root in (*roots, self._driver_root) if (text := _text(root / path))), "")

    def _is_behind_a_port(self) -> bool:
        """NVSwitches from the fourth generation on are reached by network ports of the board, marked so."""
        if self._ports is None:
            self._ports = threading.Thread(target=self._read_ports, name="switch ports", daemon=True)
            self._ports.start()
            self._ports.join(PORTS_LIMIT_S)
        return self._behind_a_port

    def _read_ports(self) -> None:
        ports = (self._sysfs / "class/infiniband").glob("*/device/vpd")
        self._behind_a_port = any(_MANAGEMENT_PORT in _vital_data(port) for port in ports)

    def _pids(self) -> list[str]:
        return [entry.name for entry in self._procfs.iterdir() if entry.name.isdigit()]

    def _say_that_it_sees_nothing(self) -> None:
        if not self._said:
            self._said = True
            print(
                f"the fabric manager is not watched: {self._procfs} does not list the node's processes",
                file=sys.stderr,
                flush=True,
            )


def _name(process: Path) -> str:
    return _text(process / "comm").strip()


def _text(file: Path) -> str:
    """Empty where the process has ended, or may not be seen."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _vital_data(file: Path) -> bytes:
    """Empty where the port does not give it, as a fault of the network is not reported here."""
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_VPD_BYTES)
    except OSError:
        return b""


IMEX_NOT_READY: Final = "NV_IMEX_NOT_READY"
IMEX_DOWN: Final = "NV_IMEX_DOMAIN_DOWN"
DEGRADED: Final = "NV_IMEX_DOMAIN_DEGRADED"

CODES: Final = (IMEX_NOT_READY, IMEX_DOWN, DEGRADED)

ASK_S: Final = 60.0
LIMIT_S: Final = 30.0
"""So long each of the two questions may take. Both are as in DCGM."""

_COMMAND: Final = "nvidia-imex-ctl"
_FOLDERS: Final = ("usr/bin", "usr/local/bin", "opt/nvidia/imex/bin", "usr/local/nvidia/imex/bin")
_NOT_CONFIGURED: Final = "Failed to read node configuration file"
_GOOD: Final = frozenset({"READY", "UNAVAILABLE"})
_UNDER_WAY: Final = frozenset(
    {
        "INITIALIZING",
        "STARTING_AUTH_SERVER",
        "WAITING_FOR_PEERS",
        "WAITING_FOR_RECOVERY",
        "INIT_GPU",
        "SHUTTING_DOWN",
    }
)
_DOMAIN: Final[Mapping[str, str]] = {"DOWN": IMEX_DOWN, "DEGRADED": DEGRADED, "UP": ""}


class _Domain(msgspec.Struct):
    """What of the answer to ``-N -j`` is read: the status of the whole, not those of its nodes."""

    status: str


_decoder: Final = msgspec.json.Decoder(_Domain)


class Imex:
    """The IMEX service of the node. ``look`` is called at every poll. ``driver_root`` is of a driver in a
    root of its own.
    """

    def __init__(self, driver_root: str = "") -> None:
        self._roots = [Path("/"), *([Path(driver_root)] if driver_root else [])]
        self._thread: threading.Thread | None = None
        self._known: Mapping[str, bool] = {}
        self._said = ""

    def look(self) -> Mapping[str, bool]:
        """Which of ``CODES`` are active, by its latest answer; empty until there is one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask_forever, name="imex", daemon=True)
            self._thread.start()
        return self._known

    def ask(self) -> Mapping[str, bool]:
        """The current state; a value that it does not report stays as it was."""
        self._known = self._states()
        return self._known

    def _ask_forever(self) -> None:
        while True:
            self.ask()
            time.sleep(ASK_S)

    def _states(self) -> Mapping[str, bool]:
        command = next(self._commands(), None)
        if command is None:
            return dict.fromkeys(CODES, False)
        daemon, domain = self._answer(command, "-q"), self._answer(command, "-N", "-j")
        known = dict(self._known)
        if _NOT_CONFIGURED in daemon:
            known = dict.fromkeys(CODES, False)
        elif (state := daemon.strip().upper()) in _GOOD | _UNDER_WAY:
            known[IMEX_NOT_READY] = state in _UNDER_WAY
        if (code := _DOMAIN.get(_status(domain))) is not None:
            known.update({each: each == code for each in (IMEX_DOWN, DEGRADED)})
        return known

    def _commands(self) -> Iterator[Path]:
        return (
            path
            for root in self._roots
            for folder in _FOLDERS
            if (path := root / folder / _COMMAND).is_file()
        )

    def _answer(self, command: Path, *options: str) -> str:
        """Empty if it fails; a change is printed."""
        try:
            ended = subprocess.run(
                [command, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._say(f"IMEX is not watched: {command} does not answer within {LIMIT_S:g} s")
            return ""
        except OSError as error:
            self._say(f"IMEX is not watched: {command}: {error.strerror}")
            return ""
        return ended.stdout.decode(errors="replace")

    def _say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            print(what, file=sys.stderr, flush=True)


def _status(answer: str) -> str:
    try:
        return _decoder.decode(answer).status.upper()
    except msgspec.DecodeError:
        return ""
