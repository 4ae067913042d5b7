"""A GPU that NVML does not open says why: what NVML documents for a handle is a fault of that GPU."""

import pytest

from nodeagent.core.model import Verdict
from nodeagent.drivers.nvidia.nvml import library
from tests.drivers.nvidia.bench import GpuNode, Judge, judged
from tests.shipped import shipped_catalog

HANDLE = "nvmlDeviceGetHandleByIndex_v2"
OF_HANDLES = {8: "NV_INSUFFICIENT_POWER", 11: "NV_IRQ_ISSUE", 15: "NV_GPU_LOST"}


@pytest.mark.parametrize("answer", OF_HANDLES)
@pytest.mark.parametrize("before", [True, False], ids=["before the start", "while it runs"])
async def test_a_gpu_that_is_not_opened_has_the_fault_that_nvml_names(
    h100: GpuNode, judge: Judge, answer: int, before: bool
) -> None:
    wanted = {OF_HANDLES[answer]: "SeparateNPU"}
    if before:
        h100.node.answer(answer, "gpu2", HANDLE)
    async with judged(h100.spec(poll_interval_s=0.02), judge) as stage:
        await stage.back()
        if not before:
            h100.node.answer(answer, "gpu2", HANDLE)
        await stage.until(lambda: judge.open("gpu2") == wanted)
        assert judge.view("gpu2").verdict is Verdict.ISOLATE
        assert [judge.open(f"gpu{number}") for number in (0, 1, 3)] == [{}, {}, {}]
        h100.node.release()
        await stage.until(lambda: judge.open("gpu2") == {} and judge.view("gpu2").verdict is Verdict.ALLOW)


@pytest.mark.parametrize("answer", [4, 17, 999])
async def test_a_gpu_that_is_not_opened_for_another_reason_is_unknown_and_says_which(
    h100: GpuNode, judge: Judge, answer: int
) -> None:
    h100.node.answer(answer, "gpu2", HANDLE)
    async with judged(h100.spec(), judge) as stage:
        lost = await stage.lost("gpu2")
        assert HANDLE.removesuffix("_v2") in lost.reason
        assert {judge.view(f"gpu{number}").verdict for number in (0, 1, 3)} == {Verdict.ALLOW}
        assert judge.view("gpu2").verdict is Verdict.UNKNOWN


def test_each_of_them_says_what_to_do() -> None:
    rows = [shipped_catalog().row(code) for code in OF_HANDLES.values()]
    assert [bool(row and row.action) for row in rows] == [True] * 3


def test_a_loss_says_who_listed_the_gpus() -> None:
    listed = {"0000:1b:00.0", "0000:1c:00.0"}
    assert str(library.unavailable(1, listed, listed)).endswith("; PCI lists 2 GPUs")
    assert str(library.unavailable(1, (), listed)).endswith("; NVML has listed 2 GPUs, PCI none")
    assert not library.unavailable(9, (), listed).absent
