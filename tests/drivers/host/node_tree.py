"""Files of a node as the kernel, systemd and storage clients keep them, below a root of a test's own.

Formats: drivers/edac/edac_mc_sysfs.c, drivers/pci/pcie/aer.c (``aer_stats_dev_attr``) and
drivers/pci/pci-sysfs.c of Linux 6.12; src/core/unit.c of systemd 252; dpc_monitor.go and dtfs_monitor.go of
MindCluster at 22bb3d98.
"""

from collections.abc import Mapping
from pathlib import Path

from nodeagent.drivers.shared.pci import HUAWEI, NVIDIA
from tests.daemon.staged import put
from tests.drivers.pci_tree import plug

MELLANOX = 0x15B3
GPU = "0000:3b:00.0"
SWITCH = "0000:3c:00.0"
CARD = "0000:5e:00.0"
NPU = "0000:c2:00.0"
PORT_OF_CARD = "0000:5d:01.0"

_CORRECTABLE = (
    "RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF"
)  # fmt: skip
_UNCORRECTABLE = (
    "Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC",
    "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP", "AtomicOpBlocked", "TLPBlockedErr",
    "PoisonTLPBlocked",
)  # fmt: skip
_AER = {
    "correctable": (_CORRECTABLE, "COR"),
    "nonfatal": (_UNCORRECTABLE, "NONFATAL"),
    "fatal": (_UNCORRECTABLE, "FATAL"),
}


class NodeTree:
    """``root`` holds ``sys``, ``proc``, ``etc``, ``run`` and ``user``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = root / "sys"
        self.procfs = root / "proc"
        self.procfs.mkdir(parents=True)
        (self.procfs / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu vme de pse\n")

    @property
    def config(self) -> dict[str, str]:
        return {"sysfs": str(self.sysfs), "procfs": str(self.procfs), "root": str(self.root)}

    # ------------------------------------------------------------------ memory

    def module(self, place: str, label: str = "", *, corrected: int = 0, uncorrected: int = 0) -> Path:
        """A module at ``place``, such as ``mc0/dimm3``, or one whose counters have changed."""
        folder = self.sysfs / "devices/system/edac/mc" / place
        if not folder.exists():
            folder.mkdir(parents=True)
            put(folder.parent / "mc_name", "Skylake Socket#0 IMC#0\n")
            for name in ("ce_noinfo_count", "ue_noinfo_count"):
                put(folder.parent / name, "0\n")
            put(folder / "dimm_label", f"{label}\n" if label else "")
            put(folder / "dimm_location", "channel 1 slot 0 \n")
            put(folder / "dimm_mem_type", "Registered-DDR4\n")
            put(folder / "size", "32768\n")
        put(folder / "dimm_ce_count", f"{corrected}\n")
        put(folder / "dimm_ue_count", f"{uncorrected}\n")
        return folder

    # ------------------------------------------------------------------ PCI Express

    def gpu(self) -> Path:
        return self._plug(f"pci0000:3a/0000:3a:00.0/{GPU}", NVIDIA, 0x2330, 0x030200)

    def switch(self) -> Path:
        return self._plug(f"pci0000:3a/0000:3a:01.0/{SWITCH}", NVIDIA, 0x22A3, 0x068000)

    def npu(self) -> Path:
        return self._plug(f"pci0000:c0/0000:c0:01.0/{NPU}", HUAWEI, 0xD802, 0x120000)

    def card(self) -> Path:
        return self._plug(f"pci0000:5d/{PORT_OF_CARD}/{CARD}", MELLANOX, 0x1021, 0x020700)

    def _plug(self, place: str, vendor: int, device: int, class_code: int) -> Path:
        folder = plug(self.sysfs, place, vendor, device, class_code)
        listed = self.sysfs / "bus/pci/devices" / folder.parent.name
        if not listed.exists():
            for name, text in (("vendor", "0x8086"), ("device", "0x352a"), ("class", "0x060400")):
                (folder.parent / name).write_text(text + "\n")
            listed.symlink_to(folder.parent.resolve())
        for each in (folder, folder.parent):
            self.link(each)
            for severity in _AER:
                aer(each, severity)
        return folder

    @staticmethod
    def link(
        folder: Path, *, width: str = "16", speed: str = "32.0 GT/s PCIe", most: tuple[str, str] | None = None
    ) -> None:
        """How the link of the function runs, and what it could, ``most``: 16 lanes at 32 GT/s."""
        can_width, can_speed = most or ("16", "32.0 GT/s PCIe")
        for name, text in (
            ("current_link_width", width),
            ("current_link_speed", speed),
            ("max_link_width", can_width),
            ("max_link_speed", can_speed),
        ):
            put(folder / name, text + "\n")

    # ------------------------------------------------------------------ services

    def systemd(self) -> None:
        (self.root / "run/systemd/units").mkdir(parents=True, exist_ok=True)

    def enable(self, unit: str, folder: str = "etc/systemd/system/multi-user.target.wants") -> None:
        link = self.root / folder / unit
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/lib/systemd/system/{unit}")

    def run(self, unit: str, run: str) -> None:
        """This run of the unit has begun; "": it does not run."""
        link = self.root / f"run/systemd/units/invocation:{unit}"
        link.unlink(missing_ok=True)
        if run:
            link.symlink_to(run)

    # ------------------------------------------------------------------ storage clients

    def dpc(self, instances: Mapping[int, tuple[int, int]]) -> Path:
        """What DPC says of its memory and its process, by instance."""
        text = "".join(
            f"[instidx={number}]\nDPC_INTERNAL_ERROR: {memory}\nDPC_PROCESS_ERROR: {process}\n"
            for number, (memory, process) in instances.items()
        )
        return self._status("dpcstatus/dpc_status_check", text)

    def dtfs(self, process: int, link: int) -> Path:
        text = f"[instidx=0]\nDTFS_PROCESS_ERROR: {process}\nDTFS_LINK_ERROR: {link}\n"
        return self._status("dtfsstatus/dtfs_status_check", text)

    def _status(self, name: str, text: str) -> Path:
        file = self.root / "user/mind-cluster" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, text)
        return file


def aer(folder: Path, severity: str, total: int | None = None, **errors: int) -> None:
    """The AER counters of a function, ``errors`` by the kernel's names."""
    names, short = _AER[severity]
    lines = [f"{name} {errors.get(name, 0)}\n" for name in names]
    total = sum(errors.values()) if total is None else total
    put(folder / f"aer_dev_{severity}", "".join(lines) + f"TOTAL_ERR_{short} {total}\n")
