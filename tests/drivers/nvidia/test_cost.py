"""What polls cost a node that works: calls into NVML, and those of them that all GPUs wait for."""

from functools import partial

from nodeagent.drivers.nvidia.gpu import SELDOM
from tests.daemon.staged import Staged, staged
from tests.drivers.nvidia.bench import GpuNode

AT_EACH_POLL = "nvmlDeviceGetComputeRunningProcesses_v3"
MOST_CALLS = 15.0
"""Of one GPU at each poll: 120 a second for eight that are polled each second."""

FOR_ALL_TO_WAIT = (
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetNvLinkState",
    "nvmlDeviceGetRemappedRows",
    "nvmlDeviceGetSramEccErrorStatus",
)
"""Calls that a GPU's own processor answers with the lock of all GPUs held."""

POLLS = 10 * SELDOM


def all_calls(node: GpuNode, device: str) -> int:
    names = {bytes(each.name).decode() for each in node.node.state.functions if each.used}
    return sum(node.node.calls(name, device) for name in names if name.startswith("nvml"))


def more_than(node: GpuNode, function: str, calls: int) -> bool | None:
    return node.node.calls(function, "gpu1") > calls or None


async def polled_more(stage: Staged, node: GpuNode, device: str) -> int:
    """That many polls later."""
    before = node.node.calls(AT_EACH_POLL, device)
    return await stage.until(
        lambda: max(0, node.node.calls(AT_EACH_POLL, device) - before - POLLS) and POLLS, "polls"
    )


async def test_a_poll_makes_few_calls(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        polls_before, calls_before = h100.node.calls(AT_EACH_POLL, "gpu1"), all_calls(h100, "gpu1")
        await polled_more(stage, h100, "gpu1")
        calls = all_calls(h100, "gpu1") - calls_before
        polls = h100.node.calls(AT_EACH_POLL, "gpu1") - polls_before
        assert calls / polls <= MOST_CALLS


async def test_what_all_gpus_wait_for_is_asked_seldom(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        polls_before = h100.node.calls(AT_EACH_POLL, "gpu1")
        before = {name: h100.node.calls(name, "gpu1") for name in FOR_ALL_TO_WAIT}
        await polled_more(stage, h100, "gpu1")
        asked = {name: h100.node.calls(name, "gpu1") - before[name] for name in FOR_ALL_TO_WAIT}
        polls = h100.node.calls(AT_EACH_POLL, "gpu1") - polls_before
        assert max(asked.values()) <= polls / SELDOM + 1
        assert min(asked[name] for name in FOR_ALL_TO_WAIT if name != "nvmlDeviceGetNvLinkState") > 0


async def test_after_an_xid_all_is_asked_at_the_next_poll(h100: GpuNode) -> None:
    """Just after it was asked by itself, when the next time is ``SELDOM`` polls away."""
    rows = "nvmlDeviceGetRemappedRows"
    async with staged(h100.spec(poll_interval_s=0.3)) as stage:
        await stage.back()
        for _ in range(2):
            before = h100.node.calls(rows, "gpu1")
            await stage.until(partial(more_than, h100, rows, before), rows)
        polls, before = h100.node.calls(AT_EACH_POLL, "gpu1"), h100.node.calls(rows, "gpu1")
        h100.gpus.raise_xid("gpu1", 63)
        await stage.until(partial(more_than, h100, rows, before), rows)
        assert h100.node.calls(AT_EACH_POLL, "gpu1") - polls <= 2
