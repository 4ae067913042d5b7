"""GPUs without persistence mode: the first handle of each takes seconds, and all else waits meanwhile.

Whether a GPU is a whole one to this machine, or a guest's share of one, which only its host can reset.

A GPU that is gone stays missed, whatever becomes of the others.

A GPU that NVML does not open says why: what NVML documents for a handle is a fault of that GPU.
"""

from pathlib import Path

import pytest

from nodeagent.core.model import DeviceSeen, SourceLost, Verdict
from nodeagent.drivers.nvidia.identity import OF_THE_HOST
from nodeagent.drivers.nvidia.nvml import library
from tests.daemon.staged import HANG_S, staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged
from tests.shipped import shipped_catalog

DISCOVERY_MS = 800
"""For four GPUs longer than one call may take, and longer than one GPU is waited for by itself."""


async def test_gpus_that_start_slowly_are_observed_at_the_first_attempt(h100: GpuNode) -> None:
    for name in h100.node.names():
        h100.node.set(name, "gpu_persistence_mode", 0)
        h100.node.set(name, "gpu_discovery_ms", DISCOVERY_MS)
    async with staged(h100.spec(call_deadline_s=HANG_S / 2)) as stage:
        await stage.back()
        assert stage.health.restarts == 0
        assert stage.faults("driver_unresponsive") == []
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []
        seen = [g for g in stage.inputs if isinstance(g, DeviceSeen)]
        assert sorted((g.device, g.identity) for g in seen) == [
            (name, h100.gpus.uuid(name)) for name in h100.node.names()
        ]


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


def taken_by_the_driver(procfs: Path, bench: GpuNode, *devices: str) -> None:
    """The kernel driver lists these itself."""
    for name in devices:
        (procfs / "driver/nvidia/gpus" / bench.address(name)).mkdir(parents=True)


async def test_a_gpu_that_is_gone_is_missed_beside_one_that_hangs_from_the_start(
    h100: GpuNode, tmp_path: Path
) -> None:
    taken_by_the_driver(tmp_path / "proc", h100, "gpu0", "gpu2", "gpu3")
    address = h100.address("gpu1")
    h100.node.take_out("gpu1")
    h100.node.hang("gpu2")
    config = {**h100.spec().config, "procfs": str(tmp_path / "proc")}
    async with staged(h100.spec(config=config, call_deadline_s=1.0)) as stage:
        await stage.signal("driver_unresponsive", "gpu1", "occur")
        assert stage.faults("device_lost") == [(address, "occur")]


async def test_pci_that_cannot_be_read_for_a_moment_is_a_reason_and_no_crash(h100: GpuNode) -> None:
    """As where a device goes while it is read."""
    vendor = h100.sysfs / "bus/pci/devices" / h100.address("gpu1") / "vendor"
    vendor.write_text("going\n")
    async with staged(h100.spec()) as stage:
        lost = await stage.lost()
        assert str(vendor) in lost.reason
        vendor.write_text("0x10de\n")
        await stage.back()
        assert stage.faults("worker_crashed") == []


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
