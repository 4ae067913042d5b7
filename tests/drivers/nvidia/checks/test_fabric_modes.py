"""The fabric as a GPU sees it: shared with tenants, not whole, or not there where it ought to be."""

from pathlib import Path

import pytest

from nodeagent.core.model import Assertion, DeviceSeen, Kind, Signal, Verdict
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


NOT_SUPPORTED, COMPLETED = 0, 3


async def test_a_gpu_that_the_driver_does_not_register_is_told_where_its_links_lead_to_switches(
    h100: GpuNode, judge: Judge
) -> None:
    h100.gpus.set_fabric("gpu1", NOT_SUPPORTED)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu1") == {"NV_FABRIC_UNSUPPORTED": "SubHealthFault"} or None)
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        h100.gpus.set_fabric("gpu1", COMPLETED)
        await stage.until(lambda: judge.open("gpu1") == {} or None)


async def test_gpus_that_are_linked_without_switches_have_no_fabric_and_miss_none(
    h100: GpuNode, judge: Judge
) -> None:
    for gpu in h100.node.names():
        h100.gpus.set_fabric(gpu, NOT_SUPPORTED)
        h100.node.set(gpu, "gpu_nvlink_remote_type", 0)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=12)
        assert judge.open("gpu1") == {}


@pytest.mark.parametrize(
    ("code", "shift"),
    [
        ("NV_FABRIC_DEGRADED_BANDWIDTH", 0),
        ("NV_FABRIC_ROUTE_RECOVERY", 2),
        ("NV_FABRIC_ROUTE_UNHEALTHY", 4),
        ("NV_FABRIC_ACCESS_TIMEOUT", 6),
    ],
)
async def test_while_the_fabric_of_a_gpu_is_not_whole_no_new_work_comes_to_it(
    h100: GpuNode, judge: Judge, code: str, shift: int
) -> None:
    """What DCGM fails a GPU for (``MonitorFabricFields`` in modules/health/DcgmHealthWatch.cpp)."""
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.node.set("gpu1", "gpu_fabric_health_mask", 0x1AA & ~(3 << shift) | 1 << shift)
        await stage.until(lambda: code in judge.open("gpu1") or None)
        assert judge.view("gpu1").verdict is Verdict.NO_NEW_JOBS
        h100.node.set("gpu1", "gpu_fabric_health_mask", 0x1AA)
        await stage.until(lambda: judge.view("gpu1").verdict is Verdict.ALLOW or None)


@pytest.mark.parametrize("code", ["NV_FABRIC_ROUTE_RECOVERY", "NV_NVLINK_CRC_RATE", "NV_NVLINK_ERROR_RATE"])
def test_what_comes_and_goes_with_a_link_never_isolates_its_gpu(judge: Judge, code: str) -> None:
    judge.take(DeviceSeen(source="nvidia", device="gpu0", kind=Kind.CHIP, vendor="nvidia", identity="GPU-1"))
    for _ in range(5):
        for assertion in (Assertion.OCCUR, Assertion.RECOVER):
            judge.take(Signal(source="nvidia", device="gpu0", code=code, assertion=assertion))
            judge.skip(600)
    assert judge.view("gpu0").verdict is Verdict.NO_NEW_JOBS
    judge.skip(86_401)
    assert judge.view("gpu0").verdict is not Verdict.NO_NEW_JOBS
