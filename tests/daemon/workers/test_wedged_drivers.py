"""The vendors' drivers wedged in the kernel: who is named, who is served on, and how it ends."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodeagent.core.model import SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import HANG_S, Staged, is_alive, staged
from tests.drivers.nvidia.bench import GpuNode
from tests.drivers.worker_specs import ascend_spec

PATIENCE = {"call_deadline_s": HANG_S, "hello_deadline_s": 5.0}
"""With the start of a worker too: one whose driver is locked up says no hello."""


@dataclass(frozen=True)
class Vendor:
    """An emulated node, its driver's worker, and its devices, of which ``stuck`` will wedge."""

    node: EmulatedNode
    spec: WorkerSpec
    stuck: str
    others: tuple[str, ...]


def ascend(directory: Path) -> Vendor:
    node = EmulatedNode.create(directory / "node", "8x910B")
    spec = ascend_spec(node.dcmi, directory / "sys", **PATIENCE)
    return Vendor(node, spec, "npu5", others("npu5"))


def nvidia(directory: Path) -> Vendor:
    gpus = GpuNode(directory, "8xH100")
    return Vendor(gpus.node, gpus.spec(**PATIENCE), "gpu5", others("gpu5"))


@pytest.fixture(params=[ascend, nvidia])
def vendor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vendor]:
    """Whatever hangs in it at the end is let go."""
    with ExitStack() as nodes:
        vendor = request.param(tmp_path)
        nodes.enter_context(vendor.node)
        yield vendor


def others(device: str) -> tuple[str, ...]:
    return tuple(f"{device[:-1]}{number}" for number in range(8) if not device.endswith(str(number)))


def whole_losses(stage: Staged) -> list[str]:
    return [given.reason for given in stage.inputs if isinstance(given, SourceLost) and not given.device]


async def test_the_device_that_wedges_is_named_and_skipped_and_the_seven_others_are_served_on(
    vendor: Vendor,
) -> None:
    node, device = vendor.node, vendor.stuck
    async with staged(vendor.spec) as stage:
        await stage.back()
        first, begun = stage.health.pid, len(stage.inputs)
        assert first is not None
        node.hang(device, uninterruptibly=True, process=first)
        node.hang(process=first)
        await stage.until(lambda: stage.health.abandoned_pids == (first,), "the worker left behind")
        await stage.lost(device, after=begun, reason="not read: an earlier call for it hangs in the driver")
        for other in vendor.others:
            await stage.signal("driver_unresponsive", other, "recover", after=begun)
            await stage.polled(other, times=2)

        assert whole_losses(stage) == [
            f"no device answered within {HANG_S:g} s; {device} hangs in the kernel"
        ]
        assert (device, "recover") not in stage.faults("driver_unresponsive")
        assert stage.health.restarts == 1
        assert is_alive(first)

        node.release()
        await stage.signal("driver_unresponsive", device, "recover", after=begun)
        await stage.until(lambda: not stage.health.abandoned_pids, "its end")
        assert not is_alive(first)


async def test_a_lock_that_nobody_gives_back_makes_the_whole_vendor_unknown_once_and_is_survived(
    vendor: Vendor,
) -> None:
    node, device = vendor.node, vendor.stuck
    async with staged(vendor.spec) as stage:
        await stage.back()
        first, begun = stage.health.pid, len(stage.inputs)
        assert first is not None
        node.hang(device, uninterruptibly=True, lock=True)
        await stage.until(lambda: stage.health.abandoned_pids[:1] == (first,), "the worker left behind")
        await stage.until(lambda: len(stage.health.abandoned_pids) == 2, "a replacement that wedges too")
        (lost,) = whole_losses(stage)
        assert lost.startswith(f"no device answered within {HANG_S:g} s; ")
        assert lost.endswith(" hangs in the kernel")
        assert stage.health.readings == {}
        assert all(map(is_alive, stage.health.abandoned_pids))
        assert stage.health.pid is None

        node.release()
        await stage.back(after=begun)
        for each in (device, *vendor.others):
            await stage.signal("driver_unresponsive", each, "recover", after=begun)
        await stage.until(lambda: not stage.health.abandoned_pids, "its end")
        assert not is_alive(first)
