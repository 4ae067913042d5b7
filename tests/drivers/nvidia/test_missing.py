"""A GPU that is gone stays missed, whatever becomes of the others."""

from pathlib import Path

from tests.daemon.staged import staged
from tests.drivers.nvidia.bench import GpuNode


def taken_by_the_driver(procfs: Path, bench: GpuNode, *devices: str) -> None:
    """The kernel driver lists these itself."""
    for name in devices:
        (procfs / "driver/nvidia/gpus" / bench.address(name)).mkdir(parents=True)


async def test_a_gpu_that_is_gone_is_missed_beside_one_that_hangs_from_the_start(
    h100: GpuNode, tmp_path: Path
) -> None:
    taken_by_the_driver(tmp_path / "proc", h100, "gpu0", "gpu2", "gpu3")
    address = h100.address("gpu1")
    h100.node.take_out("gpu1")
    h100.node.hang("gpu2")
    config = {**h100.spec().config, "procfs": str(tmp_path / "proc")}
    async with staged(h100.spec(config=config, call_deadline_s=1.0)) as stage:
        await stage.signal("driver_unresponsive", "gpu1", "occur")
        assert stage.faults("device_lost") == [(address, "occur")]


async def test_pci_that_cannot_be_read_for_a_moment_is_a_reason_and_no_crash(h100: GpuNode) -> None:
    """As where a device goes while it is read."""
    vendor = h100.sysfs / "bus/pci/devices" / h100.address("gpu1") / "vendor"
    vendor.write_text("going\n")
    async with staged(h100.spec()) as stage:
        lost = await stage.lost()
        assert str(vendor) in lost.reason
        vendor.write_text("0x10de\n")
        await stage.back()
        assert stage.faults("worker_crashed") == []
