"""What PCI lists, read from trees such as sysfs gives, and from the real one."""

from pathlib import Path

import pytest

from nodeagent.drivers.shared.pci import (
    CONTROLLER_3D,
    HUAWEI,
    NVIDIA,
    PROCESSING_ACCELERATOR,
    VGA_CONTROLLER,
    Bus,
    PciFunction,
    normal,
)
from tests.drivers.pci_tree import plug


def test_a_function_is_told_with_the_bridges_above_it_nearest_first(tmp_path: Path) -> None:
    plug(tmp_path, "pci0000:c0/0000:c0:01.0/0000:c1:00.0/0000:c2:00.0", HUAWEI, 0xD802, 0x120000)
    assert Bus(tmp_path, HUAWEI).functions({PROCESSING_ACCELERATOR}) == (
        PciFunction(
            address="0000:c2:00.0",
            vendor=0x19E5,
            device=0xD802,
            base_class=0x1200,
            upstream=("0000:c1:00.0", "0000:c0:01.0"),
        ),
    )


def test_only_the_vendors_functions_of_the_classes_are_told_by_address(tmp_path: Path) -> None:
    plug(tmp_path, "pci0000:00/0000:3b:00.0", NVIDIA, 0x2330, 0x030200)
    plug(tmp_path, "pci0000:00/0000:1b:00.0", NVIDIA, 0x1EB8, 0x030000)
    plug(tmp_path, "pci0000:00/0000:3c:00.0", NVIDIA, 0x22A3, 0x068000)
    plug(tmp_path, "pci0000:00/0000:c2:00.0", HUAWEI, 0xD802, 0x120000)
    found = Bus(tmp_path, NVIDIA).functions((CONTROLLER_3D, VGA_CONTROLLER))
    assert [each.address for each in found] == ["0000:1b:00.0", "0000:3b:00.0"]


def test_a_virtual_function_is_marked(tmp_path: Path) -> None:
    plug(tmp_path, "pci0000:00/0000:01:00.0", HUAWEI, 0xD802, 0x120000)
    plug(tmp_path, "pci0000:00/0000:01:00.1", HUAWEI, 0xD802, 0x120000, virtual=True)
    found = Bus(tmp_path, HUAWEI).functions({PROCESSING_ACCELERATOR})
    assert [(each.address, each.virtual) for each in found] == [
        ("0000:01:00.0", False),
        ("0000:01:00.1", True),
    ]


def test_what_is_known_of_a_function_is_not_read_again_until_it_is_another(tmp_path: Path) -> None:
    folder = plug(tmp_path, "pci0000:00/0000:01:00.0", HUAWEI, 0xD802, 0x120000)
    bus = Bus(tmp_path, HUAWEI)
    assert [each.device for each in bus.functions({PROCESSING_ACCELERATOR})] == [0xD802]
    (folder / "device").unlink()
    assert [each.device for each in bus.functions({PROCESSING_ACCELERATOR})] == [0xD802]

    (folder / "device").write_text("0xd803\n")
    listed = tmp_path / "bus/pci/devices" / folder.name
    again = listed.with_name("again")
    again.symlink_to(listed.readlink())
    again.rename(listed)
    assert [each.device for each in bus.functions({PROCESSING_ACCELERATOR})] == [0xD803]

    listed.unlink()
    assert bus.functions({PROCESSING_ACCELERATOR}) == ()


def test_the_driver_of_a_function_is_read_each_time(tmp_path: Path) -> None:
    folder = plug(tmp_path, "pci0000:00/0000:01:00.0", HUAWEI, 0xD802, 0x120000)
    bus = Bus(tmp_path, HUAWEI)
    assert bus.driver("0000:01:00.0") == ""
    (folder / "driver").symlink_to("../../bus/pci/drivers/vfio-pci")
    assert bus.driver("0000:01:00.0") == "vfio-pci"


def test_a_machine_without_pci_lists_nothing(tmp_path: Path) -> None:
    assert Bus(tmp_path, HUAWEI).functions({PROCESSING_ACCELERATOR}) == ()


def test_a_function_that_goes_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    folder = plug(tmp_path, "pci0000:00/0000:01:00.0", HUAWEI, 0xD802, 0x120000)
    (folder / "class").unlink()
    assert Bus(tmp_path, HUAWEI).functions({PROCESSING_ACCELERATOR}) == ()


def test_what_is_no_number_is_named_with_its_file(tmp_path: Path) -> None:
    folder = plug(tmp_path, "pci0000:00/0000:01:00.0", HUAWEI, 0xD802, 0x120000)
    (folder / "class").write_text("garbage\n")
    with pytest.raises(OSError) as refused:
        Bus(tmp_path, HUAWEI).functions({PROCESSING_ACCELERATOR})
    listed = tmp_path / "bus/pci/devices/0000:01:00.0/class"
    assert str(refused.value) == f"{listed}: 'garbage' where a hexadecimal number is needed"


@pytest.mark.skipif(not Path("/sys/bus/pci/devices").is_dir(), reason="no PCI here")
def test_the_real_tree_is_read() -> None:
    entry = min(Path("/sys/bus/pci/devices").iterdir())
    vendor = int((entry / "vendor").read_text(), 16)
    listed = Bus(Path("/sys"), vendor).functions(range(0x10000))
    assert entry.name in [each.address for each in listed]
    assert len(listed) <= len(list(Path("/sys/bus/pci/devices").iterdir()))


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("0001:c2:1f.7\n", "0001:c2:1f.7"),
        ("00010000:3b:00.0", "10000:3b:00.0"),
    ],
)
def test_addresses_of_libraries_are_brought_into_the_kernels_form(written: str, address: str) -> None:
    assert normal(written) == address


@pytest.mark.parametrize("written", ["", "3b", "gpu0", "zz:3b:00.0", "0000:3b:00.8", "0000:3b:00"])
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValueError) as refused:
        normal(written)
    assert str(refused.value) == f"{written!r} is no PCI address; one is domain:bus:device.function"
