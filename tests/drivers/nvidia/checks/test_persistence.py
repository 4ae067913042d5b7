"""Persistence mode: reported where it is off, and no reason to use a GPU less."""

import pynvml

from nodeagent.core.model import Handling, Verdict
from nodeagent.drivers.nvidia.checks.telemetry import OFF
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

NOT_SUPPORTED_VALUE = 0xFFFFFFFF


async def test_a_gpu_whose_persistence_mode_is_off_is_told_until_it_is_on_and_stays_in_service(
    h100: GpuNode, judge: Judge
) -> None:
    h100.node.set("gpu1", "gpu_discovery_ms", 0)
    h100.node.set("gpu1", "gpu_persistence_mode", 0)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert (judge.open("gpu1"), judge.open("gpu0")) == ({OFF: "NotHandleFault"}, {})
        assert (judge.view("gpu1").verdict, judge.view("gpu1").handling) == (Verdict.ALLOW, Handling.NONE)
        h100.node.set("gpu1", "gpu_persistence_mode", 1)
        await stage.until(lambda: judge.open("gpu1") == {})


async def test_where_the_driver_has_no_such_mode_none_is_missed(h100: GpuNode, judge: Judge) -> None:
    h100.node.set("gpu1", "gpu_persistence_mode", NOT_SUPPORTED_VALUE)
    h100.node.answer(pynvml.NVML_ERROR_NO_PERMISSION, "gpu2", "nvmlDeviceGetPersistenceMode")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert (judge.open("gpu1"), judge.open("gpu2")) == ({}, {})
