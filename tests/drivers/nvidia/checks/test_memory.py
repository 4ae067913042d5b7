"""Spare rows of memory: a bank with hardly one left is told, and one with none keeps new work away.

The InfoROM: read from the flash at the start and each hour, and reported where its checksums are wrong.
"""

from pathlib import Path

import pynvml
import pytest

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.checks.memory import CORRUPT, EACH_S, Inforom, summarize
from nodeagent.drivers.nvidia.gpu import SELDOM
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings
from tests.drivers.nvidia.bench import Clock, GpuNode, Judge, judged
from tests.emulator.nvml.conftest import Opened


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


ASKED = "nvmlDeviceValidateInforom"


async def test_a_corrupt_inforom_is_told_and_takes_no_gpu_out_of_service(h100: GpuNode, judge: Judge) -> None:
    h100.node.set("gpu1", "gpu_inforom_corrupt", 1)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert judge.open("gpu1") == {CORRUPT: "SubHealthFault"}
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        assert judge.open("gpu0") == {}


async def test_the_flash_is_read_once_at_the_start(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu0", times=5 * SELDOM)
        assert h100.node.calls(ASKED, "gpu0") == 1


async def test_where_it_cannot_be_read_everything_else_is(h100: GpuNode, judge: Judge) -> None:
    h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu1", ASKED)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        await stage.until(lambda: "XID_63" in judge.open("gpu1") or None)
        h100.gpus.remap("gpu1", pending=False)
        await stage.until(lambda: judge.open("gpu1") == {} or None)


def read(inforom: Inforom, calls: Calls) -> list[str] | None:
    calls.turn()
    return inforom.read(GpuReadings(calls, {}))


def test_it_is_read_anew_each_hour_and_the_last_answer_holds_meanwhile(opened: Opened) -> None:
    clock, calls = Clock(), Calls(opened.handle)
    inforom = Inforom(calls, clock)
    assert read(inforom, calls) == []
    opened.node.set("gpu0", "gpu_inforom_corrupt", 1)
    assert read(inforom, calls) == []
    clock.now_s += EACH_S
    assert read(inforom, calls) == [CORRUPT]
    opened.node.set("gpu0", "gpu_inforom_corrupt", 0)
    clock.now_s += EACH_S - 1
    assert read(inforom, calls) == [CORRUPT]
    clock.now_s += 1
    assert read(inforom, calls) == []


def test_a_failure_keeps_what_was_known_and_is_tried_again_at_once(opened: Opened) -> None:
    clock, calls = Clock(), Calls(opened.handle)
    inforom = Inforom(calls, clock)
    opened.node.set("gpu0", "gpu_inforom_corrupt", 1)
    assert read(inforom, calls) == [CORRUPT]
    clock.now_s += EACH_S
    opened.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu0", ASKED)
    for _ in range(2):
        assert read(inforom, calls) == [CORRUPT]
        assert calls.failed == ["inforom_is_valid: UNKNOWN"]
    opened.node.release()
    opened.node.set("gpu0", "gpu_inforom_corrupt", 0)
    assert read(inforom, calls) == []


def test_a_gpu_without_one_is_asked_once(opened: Opened) -> None:
    opened.node.set("gpu0", "gpu_inforom_corrupt", 0xFFFFFFFF)
    calls = Calls(opened.handle)
    inforom = Inforom(calls)
    assert [read(inforom, calls) for _ in range(3)] == [[], [], []]
    assert opened.node.calls(ASKED, "gpu0") == 1
