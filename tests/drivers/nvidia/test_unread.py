"""One optional call that fails for ever keeps nothing else from recovering or from being verified."""

import pynvml
import pytest

from tests.drivers.nvidia.bench import GpuNode, Judge, judged

ALWAYS_FAILING = {
    "nvmlDeviceGetGpuFabricInfoV": pynvml.NVML_ERROR_NO_PERMISSION,
    "nvmlDeviceGetSramEccErrorStatus": pynvml.NVML_ERROR_UNKNOWN,
    "field:165": pynvml.NVML_ERROR_TIMEOUT,
    "field:230": pynvml.NVML_ERROR_UNKNOWN,
}


@pytest.mark.parametrize("function", ALWAYS_FAILING)
async def test_what_another_call_shows_is_over_while_one_fails(
    h100: GpuNode, judge: Judge, function: str
) -> None:
    h100.node.answer(ALWAYS_FAILING[function], "gpu1", function)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        await stage.until(lambda: "XID_63" in judge.open("gpu1") or None)
        h100.gpus.remap("gpu1", pending=False)
        await stage.until(lambda: "XID_63" not in judge.open("gpu1") or None)


async def test_what_the_failing_call_would_show_stays_until_it_answers(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.set_recovery_action("gpu1", 1, deliver=False)
        await stage.until(lambda: "XID_154.1" in judge.open("gpu1") or None)
        number = h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu1", "field:230")
        h100.gpus.set_recovery_action("gpu1", 0, deliver=False)
        await stage.polled("gpu1", times=5)
        assert "XID_154.1" in judge.open("gpu1")
        h100.node.release(number)
        await stage.until(lambda: "XID_154.1" not in judge.open("gpu1") or None)
