"""The driver's pieces that need no library."""

from pathlib import Path

import pytest

from nodeagent.core.model import Kind
from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.nvidia.checks import fabric, memory, nvlink
from nodeagent.drivers.nvidia.checks.fabric import CODES, MANAGER_DOWN, FabricCheck, faults
from nodeagent.drivers.nvidia.events import WAIT_MS, WINDOW_NS, Storm
from nodeagent.drivers.nvidia.missing import Slots
from nodeagent.drivers.nvidia.nvml import calls, library
from nodeagent.drivers.nvidia.part import RECOVERY_ACTION
from nodeagent.wire import Device, Signal
from tests.shipped import shipped_catalog


def xid(code: str, at_ns: int) -> Signal:
    return Signal(device="gpu0", code=code, first_ns=at_ns, last_ns=at_ns)


def listed(device: str, address: str = "") -> Device:
    attributes = {"pci": address} if address else {}
    return Device(device=device, kind=Kind.CHIP, vendor="nvidia", attributes=attributes)


def plug(sysfs: Path, *addresses: str) -> None:
    for address in addresses:
        folder = sysfs / "bus/pci/devices" / address
        folder.mkdir(parents=True)
        for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200")):
            (folder / name).write_text(text)


def test_a_storm_tells_the_first_at_once_and_then_a_count_a_second() -> None:
    storm = Storm()
    assert [signal.count for signal in storm.add(xid("XID_31", 0), 0)] == [1]
    for at_ns in range(1, 101):
        assert storm.add(xid("XID_31", at_ns), at_ns) == []
    assert storm.patience_ms(100) <= 1000
    (counted,) = storm.due(WINDOW_NS)
    assert (counted.count, counted.first_ns, counted.last_ns) == (100, 1, 100)
    assert storm.due(2 * WINDOW_NS) == []
    assert storm.patience_ms(2 * WINDOW_NS) == WAIT_MS


def test_a_storm_of_one_xid_holds_up_no_other() -> None:
    storm = Storm()
    storm.add(xid("XID_31", 0), 0)
    storm.add(xid("XID_31", 1), 1)
    assert [signal.code for signal in storm.add(xid("XID_79", 2), 2)] == ["XID_79"]


@pytest.mark.parametrize(
    ("mask", "summary", "codes"),
    [
        (0, 0, []),
        (0x1AA, 1, []),
        (0x1A9, 2, ["NV_FABRIC_DEGRADED_BANDWIDTH"]),
        (0x5AA, 2, ["NV_FABRIC_MISCONFIGURED"]),
        (0x81AA, 1, ["NV_FABRIC_MANAGER_DISCONNECTED"]),
        (0x1AA, 2, ["NV_FABRIC_UNHEALTHY"]),
        (0x1AA, 3, ["NV_FABRIC_LIMITED"]),
        (0x1A9, 3, ["NV_FABRIC_DEGRADED_BANDWIDTH"]),
    ],
)
def test_a_health_mask_is_read_field_by_field(mask: int, summary: int, codes: list[str]) -> None:
    assert faults(FabricCheck(state=3, status=0, clique=0, mask=mask, summary=summary)) == codes


def test_a_slot_is_missing_only_once_every_listed_gpu_has_said_where_it_sits(tmp_path: Path) -> None:
    plug(tmp_path, "0000:1b:00.0", "0000:1c:00.0")
    slots = Slots(tmp_path)
    slots.look()
    assert slots.missing([listed("gpu0")], None) == ()
    (missing,) = slots.missing([listed("gpu0", "0000:1b:00.0")], None)
    assert missing.device == "0000:1c:00.0"


def test_a_slot_that_was_empty_stays_so_while_a_gpu_does_not_say_where_it_sits(tmp_path: Path) -> None:
    plug(tmp_path, "0000:1b:00.0", "0000:1c:00.0", "0000:1d:00.0")
    slots = Slots(tmp_path)
    (before,) = slots.missing([listed("gpu0", "0000:1b:00.0"), listed("gpu1", "0000:1d:00.0")], None)
    (since,) = slots.missing([listed("gpu0", "0000:1b:00.0"), listed("gpu1")], None)
    assert before.device == since.device == "0000:1c:00.0"


def test_a_switch_that_another_driver_has_taken_is_none_of_this_node(tmp_path: Path) -> None:
    plug(tmp_path, "0000:e4:00.0", "0000:e5:00.0", "0000:e6:00.0")
    devices = tmp_path / "bus/pci/devices"
    for number, taken_by in ((4, "nvidia-nvswitch"), (5, "vfio-pci")):
        (devices / f"0000:e{number}:00.0/driver").symlink_to(tmp_path / "bus/pci/drivers" / taken_by)
    for entry in devices.iterdir():
        (entry / "class").write_text("0x068000")
    slots = Slots(tmp_path)
    slots.look()
    assert slots.switches == {"0000:e4:00.0", "0000:e6:00.0"}


def test_a_gpu_that_was_listed_is_missed_though_pci_has_lost_it_too(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    assert slots.missing([listed("gpu0", "0000:1b:00.0"), listed("gpu1", "0000:1c:00.0")], None) == ()
    (missing,) = slots.missing([listed("gpu0", "0000:1b:00.0")], None)
    assert missing.device == "0000:1c:00.0"
    assert "gpu1 until now" in missing.reason


def test_no_library_and_no_gpu_is_in_order(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as raised:
        library.load(str(tmp_path / "libnvidia-ml.so.1"), frozenset())
    assert raised.value.absent
    assert raised.value.missing == []


def test_no_library_where_pci_lists_gpus_loses_each_of_them(tmp_path: Path) -> None:
    path = tmp_path / "libnvidia-ml.so.1"
    with pytest.raises(Unavailable) as raised:
        library.load(str(path), {"0000:1b:00.0", "0000:1c:00.0"})
    assert not raised.value.absent
    assert [lost.device for lost in raised.value.missing] == ["0000:1b:00.0", "0000:1c:00.0"]
    assert str(path) in str(raised.value)


def test_a_missing_library_is_the_sources_own_trouble_where_the_kernels_driver_lists_the_gpus(
    tmp_path: Path,
) -> None:
    addresses = {"0000:1b:00.0", "0000:1c:00.0"}
    with pytest.raises(Unavailable) as unavailable:
        library.load(str(tmp_path / "none.so"), addresses, taken={"0000:1b:00.0"})
    assert [lost.device for lost in unavailable.value.missing] == ["0000:1c:00.0"]
    assert "the kernel's driver lists 1 of them: drivers.nvidia is set up wrongly" in str(unavailable.value)
    with pytest.raises(Unavailable) as unavailable:
        library.load(str(tmp_path / "none.so"), (), taken={"0000:1b:00.0"})
    assert (unavailable.value.absent, unavailable.value.missing) == (False, [])


def test_a_driver_in_a_container_is_looked_for_below_its_root(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"{tmp_path}/libnvidia-ml.so.1"):
        library.load("", (), driver_root=str(tmp_path))
    wrong = tmp_path / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    wrong.parent.mkdir(parents=True)
    wrong.write_text("no library")
    with pytest.raises(Unavailable, match=f"{wrong}: .*too short"):
        library.load("", (), driver_root=str(tmp_path))


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (9, "NV_DRIVER_NOT_LOADED", "driver is not loaded"),
        (18, "NV_VERSION_MISMATCH", "different versions"),
        (4, "", "NO_PERMISSION"),
        (999, "", "UNKNOWN"),
    ],
)
def test_each_answer_of_the_library_is_a_reason_of_its_own(number: int, code: str, words: str) -> None:
    reason = library.unavailable(number, {"0000:1b:00.0"})
    assert (reason.code, reason.absent) == (code, False)
    assert words in str(reason)
    assert "PCI lists 1 GPU" in str(reason)


@pytest.mark.parametrize("number", [4, 999])
def test_device_files_that_cannot_be_opened_are_named_whichever_way_nvml_puts_it(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To whom a control group denies them, NVML answers that it does not know why."""
    hidden = tmp_path / "nvidiactl"
    monkeypatch.setattr(library, "_DEVICE_FILES", (hidden,))
    reason = str(library.unavailable(number, {"0000:1b:00.0"}))
    assert f"cannot open {hidden}: No such file or directory (in a systemd unit PrivateDevices=" in reason
    assert str(hidden) not in str(library.unavailable(18, {"0000:1b:00.0"}))


def test_a_driver_whose_device_files_lie_below_its_root_only_is_no_driver_that_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GPUs work in containers there, so the node is well: it is this source that does not reach them."""
    below = tmp_path / "driver" / str(tmp_path / "dev/nvidiactl").lstrip("/")
    below.parent.mkdir(parents=True)
    below.touch()
    monkeypatch.setattr(library, "_DEVICE_FILES", (tmp_path / "dev/nvidiactl",))
    reason = library.not_opened(9, {"0000:1b:00.0"}, None, str(tmp_path / "driver"))
    assert (reason.code, reason.absent, reason.missing) == ("", False, ())
    assert f"which lies in {below.parent} only: as root, cp -a {below.parent}/nvidia* " in str(reason)


def test_a_driver_that_lists_its_gpus_is_loaded_whatever_nvml_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_DEVICE_FILES", (tmp_path / "nvidiactl",))
    reason = library.not_opened(9, {"0000:1b:00.0"}, {"0000:1b:00.0"}, "")
    assert (reason.code, reason.absent) == ("", False)
    assert f"cannot open {tmp_path / 'nvidiactl'}: No such file or directory" in str(reason)
    assert library.not_opened(9, {"0000:1b:00.0"}, set(), "").code == "NV_DRIVER_NOT_LOADED"


def test_every_state_that_is_told_has_its_row_and_ends_with_the_state_or_by_a_person() -> None:
    named = {
        *calls.FAULTS.values(),
        *library.CODES.values(),
        *(
            memory.REMAP_PENDING,
            memory.REMAP_FAILED,
            memory.SRAM_THRESHOLD,
            memory.CHANNEL_REPAIR,
            memory.TPC_REPAIR,
        ),
        *(memory.BANK_REMAP, memory.UNREPAIRABLE, nvlink.INACTIVE, MANAGER_DOWN),
        *(fabric.NOT_READY, fabric.FAILED, fabric.UNHEALTHY, fabric.MISCONFIGURED, *fabric.FLAGS),
        *(fabric.LIMITED, fabric.UNSUPPORTED, *CODES),
        *(f"XID_{RECOVERY_ACTION}.{action}" for action in range(1, 8)),
    }
    rows = {code: shipped_catalog().row(code) for code in named}
    assert [code for code, row in rows.items() if row is None or row.code.endswith("*")] == []
    assert {code for code, row in rows.items() if row and not row.clear_on.recover} == {
        memory.REMAP_FAILED,
        memory.UNREPAIRABLE,
    }
