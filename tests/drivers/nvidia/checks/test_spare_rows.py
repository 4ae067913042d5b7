"""Spare rows of memory: a bank with hardly one left is told, and one with none keeps new work away."""

from pathlib import Path

import pytest

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.checks.memory import summarize
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings
from tests.drivers.nvidia.bench import GpuNode, Judge, judged


@pytest.mark.parametrize(
    ("told", "scarce", "exhausted"),
    [
        ({"remap_spare_banks.low": 0, "remap_spare_banks.none": 0}, 0, 0),
        ({"remap_spare_banks.low": 3, "remap_spare_banks.none": 0}, 3, 0),
        ({"remap_spare_banks.low": 3, "remap_spare_banks.none": 2}, 3, 2),
        ({"remap_spare_banks.low": 3, "remap_spare_banks.none": 2, "remap_failed": 1}, 3, 0),
        ({"remap_spare_banks.low": 0, "remap_spare_banks.none": 2, "remap_spare_groups.none": 0}, 2, 0),
        ({"remap_spare_banks.low": 0, "remap_spare_banks.none": 2, "remap_spare_groups.none": 1}, 0, 2),
        ({"remap_spare_banks.none": 2}, None, None),
    ],
)
def test_banks_count_by_what_the_next_row_that_fails_would_find(
    told: dict[str, float], scarce: float | None, exhausted: float | None
) -> None:
    summarize(readings := GpuReadings(Calls(None), dict(told)))
    assert readings.values.get("remap_scarce_banks") == scarce
    assert readings.values.get("remap_exhausted_banks") == exhausted


async def test_a_bank_with_its_last_spare_row_is_told_and_one_with_none_keeps_new_work_away(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        for place, banks in ((0, 2556), (1, 1), (2, 2), (3, 1)):
            h100.node.set("gpu0", "gpu_row_banks", banks, place=place)
        await stage.until(lambda: judge.open("gpu0") == {"NV_SPARE_ROWS_LOW": "SubHealthFault"} or None)
        assert judge.view("gpu0").verdict is Verdict.ALLOW
        h100.node.set("gpu0", "gpu_row_banks", 0, place=3)
        h100.node.set("gpu0", "gpu_row_banks", 1, place=4)
        await stage.until(lambda: judge.open("gpu0") == {"NV_SPARE_ROWS_NONE": "PreSeparateNPU"} or None)
        assert judge.view("gpu0").verdict is Verdict.NO_NEW_JOBS
        assert judge.open("gpu1") == {}
        h100.gpus.fail_remap("gpu0")
        await stage.until(lambda: judge.open("gpu0") == {"XID_64": "RestartNPU"} or None)


async def test_a_bank_that_can_be_replaced_as_a_whole_keeps_nothing_away(
    tmp_path: Path, judge: Judge
) -> None:
    b200 = GpuNode(tmp_path / "b200", "2xB200")
    with b200.node:
        b200.node.set("gpu0", "gpu_row_banks", 1, place=4)
        b200.node.set("gpu1", "gpu_row_banks", 1, place=4)
        b200.node.set("gpu1", "gpu_bank_groups_empty", 1)
        async with judged(b200.spec(), judge) as stage:
            await stage.back()
            await stage.until(lambda: "NV_SPARE_ROWS_LOW" in judge.open("gpu0") or None)
            await stage.until(lambda: judge.open("gpu1") == {"NV_SPARE_ROWS_NONE": "PreSeparateNPU"} or None)
