"""The InfoROM: read from the flash at the start and each hour, and reported where its checksums are wrong."""

import pynvml

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.checks.memory import CORRUPT, EACH_S, Inforom
from nodeagent.drivers.nvidia.gpu import SELDOM
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings
from tests.drivers.nvidia.bench import Clock, GpuNode, Judge, judged
from tests.emulator.nvml.conftest import Opened

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
