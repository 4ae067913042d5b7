"""Whether a GPU is a whole one to this machine, or a guest's share of one, which only its host can reset."""

import pytest

from nodeagent.core.model import DeviceSeen
from nodeagent.drivers.nvidia.identity import OF_THE_HOST
from tests.daemon.staged import staged
from tests.drivers.nvidia.bench import GpuNode

NONE, PASSED_THROUGH, SHARE_OF_A_GUEST, OF_A_HYPERVISOR = range(4)


@pytest.mark.parametrize(
    ("mode", "reported"),
    [
        (NONE, {}),
        (PASSED_THROUGH, {"virtualization": "passthrough"}),
        (SHARE_OF_A_GUEST, {"virtualization": "vgpu", "no_reset": OF_THE_HOST}),
        (OF_A_HYPERVISOR, {"virtualization": "host_vgpu"}),
        (9, {"virtualization": "9"}),
    ],
)
async def test_a_guests_share_of_a_gpu_says_that_only_its_host_can_reset_it(
    h100: GpuNode, mode: int, reported: dict[str, str]
) -> None:
    h100.node.set("gpu1", "gpu_virtualization_mode", mode)
    async with staged(h100.spec()) as stage:
        await stage.back()
        (seen,) = [each for each in stage.inputs if isinstance(each, DeviceSeen) and each.device == "gpu1"]
        assert {
            name: seen.attributes[name] for name in ("virtualization", "no_reset") if name in seen.attributes
        } == reported


async def test_what_a_driver_does_not_say_hinders_no_reset(h100: GpuNode) -> None:
    h100.node.answer(999, "gpu1", "nvmlDeviceGetVirtualizationMode")
    async with staged(h100.spec()) as stage:
        await stage.back()
        (seen,) = [each for each in stage.inputs if isinstance(each, DeviceSeen) and each.device == "gpu1"]
        assert {"virtualization", "no_reset"}.isdisjoint(seen.attributes)
