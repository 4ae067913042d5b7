"""GPUs of tenants that share the NVSwitches wait for their partition, and nothing is wrong with them."""

from pathlib import Path

from tests.drivers.nvidia.bench import GpuNode, Judge, judged

IN_PROGRESS = 2


async def test_a_gpu_that_waits_for_its_partition_has_no_fault(
    h100: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    configuration = tmp_path / "driver/usr/share/nvidia/nvswitch/fabricmanager.cfg"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("FABRIC_MODE=1\n")
    h100.gpus.set_fabric("gpu1", IN_PROGRESS)
    h100.gpus.set_fabric("gpu2", 3, status=999)
    config = {**h100.spec().config, "driver_root": str(tmp_path / "driver")}
    async with judged(h100.spec(config=config), judge) as stage:
        await stage.back()
        await stage.until(lambda: "NV_FABRIC_FAILED" in judge.open("gpu2") or None)
        await stage.polled("gpu1", times=10)
        assert judge.open("gpu1") == {}


async def test_without_sharing_it_is_one_that_has_not_joined(h100: GpuNode, judge: Judge) -> None:
    h100.gpus.set_fabric("gpu1", IN_PROGRESS)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: "NV_FABRIC_NOT_READY" in judge.open("gpu1") or None)
