"""What the process of a reset sees of the devices itself, also of those that do not answer."""

import os
from pathlib import Path

import pytest

from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.emulator.node import EmulatedNode
from nodeagent.reset_unit import devices
from nodeagent.reset_unit.devices import list_devices
from nodeagent.reset_unit.exchange.requests import RequestedDevice
from nodeagent.vendors import VendorConfig
from tests.reset_unit.conftest import Emulate, fake_tool, make_reset_unit

TOOL = """
print("GPU 00000000:00:00.0 was successfully reset.", file=open({called!r}, "a"))
print(*sys.argv[1:], file=open({called!r}, "a"))
print("GPU 00000000:00:00.0 was successfully reset.")
"""
KERNEL_SAYS = "GPU UUID: \t {uuid}\nDevice Minor: \t 1\n"


def section(node: EmulatedNode, library: Path) -> VendorConfig:
    return VendorConfig(library=str(library), sysfs=str(node.sysfs))


def test_the_devices_and_who_is_on_them(emulate: Emulate) -> None:
    node = emulate("4x910B")
    node.hold("npu2", os.getpid())
    seen = list_devices("ascend", section(node, node.dcmi), "boot", ["npu1", "npu2", "npu9"])
    assert list(seen.devices) == ["npu0", "npu1", "npu2", "npu3"]
    assert {device.attributes["group"] for device in seen.devices.values()} == {"npus"}
    held = {
        name: None if each is None else [holder.pid for holder in each] for name, each in seen.users.items()
    }
    assert held == {"npu1": [], "npu2": [os.getpid()], "npu9": None}


def test_a_library_that_is_not_there_is_named(emulate: Emulate, tmp_path: Path) -> None:
    node = emulate("4x910B")
    with pytest.raises(
        ResetRefused, match=rf"^the ascend devices cannot be read: .* but {tmp_path}/none.so: there is no"
    ):
        list_devices("ascend", section(node, tmp_path / "none.so"), "boot")


def test_a_library_that_hangs_is_not_waited_for_for_ever(
    emulate: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "LOOK_LIMIT_S", 1.0)
    monkeypatch.setattr(devices, "END_LIMIT_S", 0.2)
    node = emulate("4x910B")
    node.hang()
    with pytest.raises(ResetRefused, match=r"^the ascend devices were not listed within 1 s$"):
        list_devices("ascend", section(node, node.dcmi), "boot")


def test_a_gpu_that_does_not_even_say_who_it_is_is_reset_where_the_kernel_knows_it(tmp_path: Path) -> None:
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        reset_unit = make_reset_unit(tmp_path, node, "nvidia")
        pci = f"{node.gpus.pci('gpu1')}.0"
        reset_unit.procfs = tmp_path / "proc"
        listed = reset_unit.procfs / "driver/nvidia/gpus" / pci
        listed.mkdir(parents=True)
        (listed / "information").write_text(KERNEL_SAYS.format(uuid=node.gpus.uuid("gpu1")))
        reset_unit.configure()
        reset_unit.env = fake_tool(
            tmp_path / "bin", "nvidia-smi", TOOL.format(called=str(tmp_path / "called")), {}
        )
        node.hang("gpu1", "nvmlDeviceGetHandleByIndex_v2")
        result = reset_unit.do(
            devices=(RequestedDevice(name="gpu1", identity=node.gpus.uuid("gpu1"), pci=pci),)
        )
    assert (result.state, result.reason) == ("done", "the devices have started again")
    assert f"--gpu-reset -i {pci}" in (tmp_path / "called").read_text().splitlines()
