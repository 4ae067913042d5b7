"""Which GPUs the driver says are reset together."""

from pathlib import Path

import pytest

from nodeagent.core.model import DeviceSeen
from tests.daemon.staged import Staged, staged
from tests.drivers.nvidia.bench import GpuNode

VOLTA, AMPERE = 5, 7
GPU, SWITCH = 0, 2
ALONE = ["gpu0", "gpu1"]
TOGETHER = ["nvlink", "nvlink"]


def groups(stage: Staged) -> list[str]:
    """Of each GPU, as it was last described."""
    seen = {given.device: given for given in stage.inputs if isinstance(given, DeviceSeen)}
    return [seen[name].attributes["group"] for name in sorted(seen)]


@pytest.mark.parametrize("product", ["H100", "H200", "B200"])
async def test_from_hopper_on_a_gpu_behind_switches_is_reset_by_itself(tmp_path: Path, product: str) -> None:
    bench = GpuNode(tmp_path, f"2x{product}")
    with bench.node:
        async with staged(bench.spec()) as stage:
            await stage.back()
            assert groups(stage) == ALONE


@pytest.mark.parametrize(
    ("architecture", "partner", "together"),
    [
        (AMPERE, SWITCH, TOGETHER),
        (AMPERE, GPU, ALONE),
        (VOLTA, SWITCH, TOGETHER),
        (VOLTA, GPU, TOGETHER),
        (0xFFFFFFFF, GPU, TOGETHER),
    ],
)
async def test_before_hopper_it_depends_on_what_joins_the_gpus(
    tmp_path: Path, architecture: int, partner: int, together: list[str]
) -> None:
    bench = GpuNode(tmp_path, "2xA100")
    with bench.node:
        for name in bench.node.names():
            bench.node.set(name, "gpu_architecture", architecture)
            bench.node.set(name, "gpu_nvlink_remote_type", partner)
        async with staged(bench.spec()) as stage:
            await stage.back()
            assert groups(stage) == together


async def test_gpus_without_links_are_reset_by_themselves_though_they_are_old(tmp_path: Path) -> None:
    bench = GpuNode(tmp_path, "2xA100")
    with bench.node:
        for name in bench.node.names():
            bench.node.set(name, "gpu_architecture", VOLTA)
        bench.node.answer(3, function="nvmlDeviceGetNvLinkState")
        async with staged(bench.spec()) as stage:
            await stage.back()
            assert groups(stage) == ALONE


async def test_links_without_a_partner_join_nothing(tmp_path: Path) -> None:
    """As on cards in slots, whose links are there and lead nowhere."""
    bench = GpuNode(tmp_path, "2xA100")
    with bench.node:
        bench.node.answer(2, function="nvmlDeviceGetNvLinkRemoteDeviceType")
        async with staged(bench.spec()) as stage:
            await stage.back()
            assert groups(stage) == ALONE


async def test_gpus_stay_together_when_their_links_go_down(tmp_path: Path) -> None:
    bench = GpuNode(tmp_path, "2xA100")
    with bench.node:
        async with staged(bench.spec()) as stage:
            await stage.back()
            bench.node.answer(2, function="nvmlDeviceGetNvLinkRemoteDeviceType")
            for name in bench.node.names():
                # Cut differently, it is described anew.
                bench.gpus.partition(name, [3, 3])
            await stage.until(lambda: modes(stage) == ["enabled", "enabled"])
            assert groups(stage) == TOGETHER


def modes(stage: Staged) -> list[str]:
    seen = {given.device: given for given in stage.inputs if isinstance(given, DeviceSeen)}
    return [seen[name].attributes["mig"] for name in sorted(seen)]


async def test_a_gpu_cut_in_pieces_is_one_device_and_one_member(tmp_path: Path) -> None:
    bench = GpuNode(tmp_path, "2xH100")
    with bench.node:
        bench.gpus.partition("gpu1", [3, 3])
        async with staged(bench.spec()) as stage:
            await stage.back()
            assert groups(stage) == ALONE
