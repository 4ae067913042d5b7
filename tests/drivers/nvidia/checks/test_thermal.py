"""How far a GPU and its memory are from the temperature at which they are slowed."""

from pathlib import Path

import pytest

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.gpu import SELDOM
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

GPU, MEMORY = "temperature_excess_celsius.gpu", "temperature_excess_celsius.memory"
CORE_HOT, MEMORY_HOT = "NV_TEMPERATURE_GPU", "NV_TEMPERATURE_MEMORY"


@pytest.mark.parametrize(
    ("product", "fields", "excess", "code"),
    [
        ("2xA100", {"gpu_temperature_celsius": 85}, {GPU: 0.0}, ""),
        ("2xA100", {"gpu_temperature_celsius": 87}, {GPU: 2.0}, CORE_HOT),
        ("2xA100", {"gpu_memory_temperature_celsius": 96}, {MEMORY: 1.0}, MEMORY_HOT),
        ("2xH100", {"gpu_temperature_celsius": 88, "gpu_margin_celsius": -1}, {GPU: 1.0}, CORE_HOT),
        ("2xH100", {"gpu_memory_temperature_celsius": 106}, {MEMORY: 1.0}, MEMORY_HOT),
        ("2xH100", {"gpu_margin_celsius": -5}, {GPU: -53.0}, ""),
        ("2xB200", {"gpu_temperature_celsius": 89, "gpu_margin_celsius": 2}, {GPU: -2.0}, ""),
        ("2xB200", {"gpu_temperature_celsius": 92, "gpu_margin_celsius": -1}, {GPU: 1.0}, CORE_HOT),
    ],
)
async def test_a_gpu_at_its_limit_for_a_minute_is_told_by_what_its_driver_has(
    tmp_path: Path, judge: Judge, product: str, fields: dict[str, int], excess: dict[str, float], code: str
) -> None:
    bench = GpuNode(tmp_path, product)
    with bench.node:
        for field, value in fields.items():
            bench.node.set("gpu1", field, value)
        async with judged(bench.spec(), judge) as stage:
            await stage.until(lambda: excess.items() <= stage.health.readings.get("gpu1", {}).items())
            judge.skip(61)
            assert judge.open("gpu1") == ({code: "SubHealthFault"} if code else {})
            assert judge.open("gpu0") == {}
            assert judge.view("gpu1").verdict is Verdict.ALLOW


@pytest.mark.parametrize("margin", [0, -5])
async def test_a_margin_by_which_a_cool_gpu_would_be_too_hot_is_not_believed(
    tmp_path: Path, judge: Judge, margin: int
) -> None:
    bench = GpuNode(tmp_path, "2xB200")
    with bench.node:
        bench.node.set("gpu1", "gpu_margin_celsius", margin)
        async with judged(bench.spec(), judge) as stage:
            await stage.polled("gpu1", times=2 * SELDOM)
            judge.skip(3600)
            assert judge.open("gpu1") == {}
            assert GPU not in stage.health.readings["gpu1"]
            assert stage.health.readings["gpu0"][GPU] == -57.0


async def test_it_is_over_a_few_degrees_below_the_limit(h100: GpuNode, judge: Judge) -> None:
    h100.node.set("gpu1", "gpu_temperature_celsius", 90)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        judge.skip(61)
        assert judge.open("gpu1") == {CORE_HOT: "SubHealthFault"}
        h100.node.set("gpu1", "gpu_temperature_celsius", 86)
        await stage.until(lambda: stage.health.readings["gpu1"][GPU] == -1.0)
        assert judge.open("gpu1") == {CORE_HOT: "SubHealthFault"}
        h100.node.set("gpu1", "gpu_temperature_celsius", 83)
        await stage.until(lambda: judge.open("gpu1") == {})


async def test_the_limits_of_a_gpu_are_asked_once(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu0", times=5 * SELDOM)
        assert h100.node.calls("nvmlDeviceGetTemperatureThreshold", "gpu0") == 2


async def test_a_limit_that_could_not_be_read_is_asked_again(h100: GpuNode, judge: Judge) -> None:
    h100.node.answer(999, "gpu1", "nvmlDeviceGetTemperatureThreshold")
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=2 * SELDOM)
        assert MEMORY not in stage.health.readings["gpu1"]
        h100.node.release()
        await stage.until(lambda: stage.health.readings["gpu1"].get(MEMORY) == -64.0)
