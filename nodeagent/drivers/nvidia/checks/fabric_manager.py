"""Whether the fabric manager runs on a node whose NVSwitches need it.

GPUs that have once joined the fabric look well without it, while no new program can use them together:
so that neither NVML nor the kernel log says so. It is looked for as a process, which finds it as a service
and in a container alike. Nodes whose switches are managed from elsewhere (NVL72, a guest of a shared
fabric) list none, and are not asked for it. Its configuration says whether tenants share the switches. It
starts nothing.

Its log is not read. What gpud takes from it (components/accelerator/nvidia/fabric-manager/log_matcher.go) is
reported otherwise: errors of switches are SXids in the kernel log; a topology that it does not know ends it,
and its process is missed; a multicast team that lacks a GPU is one program's request. What a fabric of
switches behind network ports does to a GPU, NVML says (``fabric``).
"""

import re
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

DOWN: Final = "NV_FABRIC_MANAGER_DOWN"

LOOK_S: Final = 2.0
"""All processes are looked through this often while it is not found."""

PORTS_LIMIT_S: Final = 1.0
"""Ports that take longer to say what they are for are not waited for: they are no GPU's."""

_PROCESS: Final = "nv-fabricmanage"
"""The kernel keeps fifteen letters of a name."""

_KERNEL_THREADS: Final = "kthreadd"
"""Process 2, which only who sees all processes of the node sees."""

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
    """Empty where the port does not give it, as a fault of the network is no business of this."""
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_VPD_BYTES)
    except OSError:
        return b""
