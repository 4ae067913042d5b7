"""A tree of sysfs with network cards, chips and the bridges above them, laid out as the kernel does."""

import os
import tomllib
from pathlib import Path
from typing import Final

FIXTURE: Final = Path(__file__).parents[2] / "fixtures/links/rdma_port.toml"

NVIDIA_GPU: Final = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}
HUAWEI_NPU: Final = {"vendor": "0x19e5", "device": "0xd802", "class": "0x120000"}
MELLANOX: Final = {"vendor": "0x15b3", "device": "0x1021", "class": "0x020700"}

CARD = {"fw_ver": "28.41.1000", "board_id": "MT_0000000838"}
"""Of the same ConnectX-7 as the fixture."""


class Tree:
    """``root`` stands for /sys. A path of PCI is the addresses from the root port down, the device last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in (
            "class/net",
            "class/infiniband",
            "bus/pci/devices",
            "bus/usb",
            "bus/pci/drivers/mlx5_core",
        ):
            (root / folder).mkdir(parents=True, exist_ok=True)

    def function(self, *path: str, files: dict[str, str]) -> Path:
        """A PCI function below these bridges."""
        folder = self.root / "devices/pci0000:00"
        for address in path:
            folder /= address
            folder.mkdir(parents=True, exist_ok=True)
            _link(self.root / "bus/pci/devices" / address, folder)
            _link(folder / "subsystem", self.root / "bus/pci")
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n")
        return folder

    def chip(self, *path: str, files: dict[str, str] = NVIDIA_GPU) -> None:
        self.function(*path, files=files)

    def rdma(self, device: str, *path: str, port: int = 1, layer: str = "InfiniBand") -> Path:
        """An RDMA device with one port; the folder of the port."""
        function = self.function(*path, files=MELLANOX)
        _link(function / "driver", self.root / "bus/pci/drivers/mlx5_core")
        here = function / "infiniband" / device
        folder = here / "ports" / str(port)
        given = tomllib.loads(FIXTURE.read_text())
        for part, files in given.items():
            inside = folder if part == "files" else folder / part
            inside.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (inside / name).write_text(f"{text}\n")
        (folder / "link_layer").write_text(f"{layer}\n")
        for name, text in CARD.items():
            (here / name).write_text(f"{text}\n")
        _link(here / "device", function)
        _link(self.root / "class/infiniband" / device, here)
        return folder

    def interface(
        self, name: str, *path: str, dev_port: int = 0, phys_port_name: str = "", bus: str = "pci"
    ) -> Path:
        """A network interface of this PCI function; its folder."""
        function = self.function(*path, files=MELLANOX)
        _link(function / "driver", self.root / "bus/pci/drivers/mlx5_core")
        device = function
        if bus == "usb":
            device = function / "usb1/1-1/1-1:1.0"
            device.mkdir(parents=True, exist_ok=True)
            _link(device / "subsystem", self.root / "bus/usb")
        here = device / "net" / name
        here.mkdir(parents=True, exist_ok=True)
        (here / "dev_port").write_text(f"{dev_port}\n")
        (here / "phys_port_name").write_text(f"{phys_port_name}\n")
        _link(here / "device", device)
        _link(self.root / "class/net" / name, here)
        return here

    def port(self, device: str, port: int = 1) -> Path:
        return self.root / "class/infiniband" / device / "ports" / str(port)

    def write(self, device: str, **files: str) -> None:
        """Of the port 1; ``counters__NAME`` is a file below counters."""
        for name, text in files.items():
            file = self.port(device) / name.replace("__", "/")
            # In one step, as a file of sysfs is never read half written.
            fresh = file.with_name(f".{file.name}")
            fresh.write_text(f"{text}\n")
            fresh.rename(file)


def _link(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
