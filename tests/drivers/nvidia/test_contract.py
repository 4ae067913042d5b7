"""The NVIDIA driver keeps the contract of all drivers, and what vendors' drivers owe beyond it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.model import DeviceSeen
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.wire import Configure, Hello, decode_report, encode
from tests.daemon.staged import BOOT, HANG_S, is_alive, staged
from tests.drivers.contract import DriverContract, Scene
from tests.drivers.nvidia.bench import GpuNode


class GpuScene(Scene):
    device = "gpu0"

    def __init__(self, bench: GpuNode) -> None:
        self._bench = bench
        self._faults = 0

    def spec(self, **given: Any) -> WorkerSpec:
        return self._bench.spec(**given)

    def fault(self) -> str:
        """One that stays to be seen: an Xid that comes while nobody listens is reported by nobody again."""
        self._faults += 1
        if self._faults == 1:
            self._bench.gpus.remap(self.device, uncorrected=1, pending=True)
            return "XID_63"
        self._bench.gpus.set_recovery_action(self.device, 1, deliver=False)
        return "XID_154.1"

    def remove_library(self) -> None:
        self._bench.library.rename(self._bench.library.with_suffix(".away"))
        for name in self._bench.node.names():
            self._bench.unplug(name)

    def remove_devices(self) -> None:
        for name in self._bench.node.names():
            self._bench.node.take_out(name)
            self._bench.unplug(name)

    def make_busy(self) -> str:
        self._bench.node.answer(19, self.device)
        return "IN_USE"

    def babble(self) -> None:
        node = self._bench.node
        node.set(self.device, "gpu_temperature_celsius", -400)
        node.set(self.device, "gpu_uuid", "no id at all")
        for nonsense in (0, 2**63, 2**64 - 1):
            self._bench.gpus.post(self.device, 0x8, nonsense)
        self._bench.gpus.post(self.device, 0x1, 7)

    def lose_device(self) -> None:
        self._bench.node.answer(999, self.device)

    def restore(self) -> None:
        self._bench.node.release()
        away = self._bench.library.with_suffix(".away")
        if away.exists():
            away.rename(self._bench.library)
            for name in self._bench.node.names():
                self._bench.plug(name)


class TestNvidia(DriverContract):
    @pytest.fixture
    def scene(self, h100: GpuNode) -> Scene:
        return GpuScene(h100)


async def test_a_gpu_that_hangs_from_the_start_is_listed_with_the_others(h100: GpuNode) -> None:
    h100.node.hang("gpu2")
    async with staged(h100.spec(call_deadline_s=HANG_S)) as stage:
        await stage.polled("gpu1")
        listed = {given.device: given.identity for given in stage.inputs if isinstance(given, DeviceSeen)}
        assert sorted(listed) == ["gpu0", "gpu1", "gpu2", "gpu3"]
        assert listed["gpu2"] == ""
        await stage.signal("driver_unresponsive", "gpu2", "occur")
        h100.node.release()
        await stage.until(
            lambda: any(
                isinstance(given, DeviceSeen) and given.identity == h100.gpus.uuid("gpu2")
                for given in stage.inputs
            )
        )


async def test_a_driver_that_locks_up_as_a_whole_costs_the_worker_and_no_more(h100: GpuNode) -> None:
    async with staged(h100.spec(call_deadline_s=HANG_S)) as stage:
        await stage.back()
        pid = stage.health.pid
        assert pid is not None
        h100.node.hang(lock=True)
        lost = await stage.lost()
        assert "no device answered within" in lost.reason
        before = len(stage.inputs)
        h100.node.release()
        await stage.back(after=before)
        assert not is_alive(pid)
        assert stage.health.restarts >= 1


async def test_a_crash_in_the_library_costs_the_worker_and_no_more(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        before = len(stage.inputs)
        h100.node.crash("gpu1")
        await stage.lost(after=before)
        await stage.back(after=before)
        assert "SIGSEGV" in str([given for given in stage.inputs if "worker_crashed" in str(given)])


async def test_a_gpu_that_pci_lists_and_the_driver_does_not_is_lost(h100: GpuNode) -> None:
    h100.node.take_out("gpu1")
    address = h100.address("gpu1")
    async with staged(h100.spec()) as stage:
        signal = await stage.signal("device_lost", address, "occur")
        await stage.back()
        assert "PCI lists a GPU" in signal.evidence["reason"]
        assert [d.device for d in stage.inputs if isinstance(d, DeviceSeen)] == ["gpu0", "gpu1", "gpu2"]


async def test_a_gpu_that_another_driver_has_taken_is_not_missed(h100: GpuNode) -> None:
    h100.node.take_out("gpu1")
    h100.plug("gpu1", bound_to="vfio-pci")
    async with staged(h100.spec()) as stage:
        await stage.back()
        assert stage.faults("device_lost") == []


async def test_a_gpu_that_the_driver_takes_later_is_listed_then(h100: GpuNode, tmp_path: Path) -> None:
    by_the_kernel = tmp_path / "proc/driver/nvidia/gpus"
    by_the_kernel.mkdir(parents=True)
    for name in ("gpu0", "gpu2", "gpu3"):
        (by_the_kernel / h100.address(name)).mkdir()
    h100.node.take_out("gpu1")
    config = {**h100.spec().config, "procfs": str(tmp_path / "proc")}
    async with staged(h100.spec(config=config)) as stage:
        await stage.signal("device_lost", h100.address("gpu1"), "occur")
        await stage.back()
        before = len(stage.inputs)
        h100.node.return_("gpu1")
        (by_the_kernel / h100.address("gpu1")).mkdir()
        lost = await stage.lost(after=before)
        assert h100.address("gpu1") in lost.reason
        await stage.back(after=before)
        await stage.signal("device_lost", h100.address("gpu1"), "recover", after=before)
        seen = {g.device: g.identity for g in stage.inputs if isinstance(g, DeviceSeen)}
        assert seen == {name: h100.gpus.uuid(name) for name in ("gpu0", "gpu1", "gpu2", "gpu3")}


async def test_another_part_in_a_slot_is_another_device(h100: GpuNode) -> None:
    before = h100.gpus.uuid("gpu1")
    async with staged(h100.spec()) as stage:
        await stage.back()
        h100.gpus.replace("gpu1", seed=99)
        after = h100.gpus.uuid("gpu1")
        await stage.until(
            lambda: [
                given
                for given in stage.inputs
                if isinstance(given, DeviceSeen) and given.device == "gpu1" and given.identity == after
            ]
        )
        h100.gpus.raise_xid("gpu1", 79)
        await stage.signal("XID_79", "gpu1", "once")
        assert before != after


async def test_it_says_who_each_gpu_is_and_where_it_sits(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        seen = next(g for g in stage.inputs if isinstance(g, DeviceSeen) and g.device == "gpu3")
        assert seen.identity == h100.gpus.uuid("gpu3")
        assert seen.attributes["pci"] == h100.address("gpu3")
        assert {
            "serial",
            "product",
            "board",
            "firmware",
            "driver",
            "minor",
            "slot",
            "mig",
            "upstream",
        } <= set(seen.attributes)


async def test_a_library_that_is_not_one_is_told_by_name(h100: GpuNode, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.so"
    wrong.write_bytes(b"no library")
    h100.library = wrong
    async with staged(h100.spec()) as stage:
        lost = await stage.lost()
        assert str(wrong) in lost.reason
        assert "PCI lists 4 GPUs" in lost.reason


def test_a_gpu_to_be_skipped_is_listed_and_not_touched(h100: GpuNode) -> None:
    worker = subprocess.Popen(h100.spec().command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
    assert worker.stdin
    assert worker.stdout
    order = Configure(driver="nvidia", boot_id=BOOT, config=dict(h100.spec().config), skip=("gpu2",))
    worker.stdin.write(encode(order))
    worker.stdin.flush()
    hello = decode_report(worker.stdout.readline())
    worker.communicate()
    assert isinstance(hello, Hello)
    assert [(device.device, bool(device.identity)) for device in hello.devices] == [
        ("gpu0", True),
        ("gpu1", True),
        ("gpu2", False),
        ("gpu3", True),
    ]
    assert hello.missing == ()
    assert h100.node.calls("nvmlDeviceGetHandleByIndex_v2", "gpu2") == 0
    assert h100.node.calls("nvmlDeviceGetHandleByIndex_v2", "gpu1") > 0
