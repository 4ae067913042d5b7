"""The host driver keeps the contract of all drivers."""

import os
import shutil
import signal
import sys
from typing import Any

import pytest

from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import put, staged, worker_spec
from tests.drivers.contract import DriverContract, Inapplicable, Scene
from tests.drivers.host.node_tree import NodeTree


class HostScene(Scene):
    device = "dimm:A1"

    def __init__(self, node: NodeTree) -> None:
        self._node = node
        self._faults = 0
        node.module("mc0/dimm0", "A1")
        node.systemd()
        node.dpc({1: (0, 0)})

    def spec(self, **given: Any) -> WorkerSpec:
        defaults: dict[str, Any] = {
            "source": "host",
            "command": (sys.executable, "-m", "nodeagent.worker", "host"),
            "config": self._node.config,
        }
        return worker_spec("", **{**defaults, **given})

    def fault(self) -> str:
        self._faults += 1
        corrected = self._faults - 1
        self._node.module("mc0/dimm0", corrected=corrected, uncorrected=1)
        return "DIMM_CE" if corrected else "DIMM_UE"

    def remove_library(self) -> None:
        """Nothing that it could watch."""
        self._node.root.rename(self._node.root.with_name("away"))

    def remove_devices(self) -> None:
        shutil.rmtree(self._node.sysfs)

    def make_busy(self) -> str:
        put(self._node.sysfs / "devices/system/edac/mc/mc0/dimm0/dimm_ce_count", "busy\n")
        return "dimm_ce_count: 'busy' where a whole number is needed"

    def babble(self) -> None:
        raise Inapplicable("a counter that makes no sense is a call that fails")

    def lose_device(self) -> None:
        self.make_busy()

    def restore(self) -> None:
        away = self._node.root.with_name("away")
        if away.exists():
            away.rename(self._node.root)
        self._node.module("mc0/dimm0")


class TestHost(DriverContract):
    @pytest.fixture
    def scene(self, node: NodeTree) -> Scene:
        return HostScene(node)

    async def test_crash(self, scene: Scene) -> None:
        """Only what is counted once a worker has looked is known to be new."""
        async with staged(scene.spec()) as stage:
            await stage.back()
            await stage.polled(scene.device, 2)
            scene.fault()
            await stage.signal("DIMM_UE", scene.device, "occur")
            pid = stage.health.pid
            assert pid is not None
            before = len(stage.inputs)
            os.kill(pid, signal.SIGKILL)
            await stage.back(after=before)
            await stage.polled(scene.device, 2)
            scene.fault()
            await stage.signal("DIMM_CE", scene.device, "once")
            assert stage.faults("DIMM_UE") == [(scene.device, "occur")]
