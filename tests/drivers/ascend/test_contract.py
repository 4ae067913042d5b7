"""The NPUs keep the contract of all drivers."""

from pathlib import Path
from typing import Any

import pytest

from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.contract import DriverContract, Scene
from tests.drivers.worker_specs import ascend_spec

CODES = (0x80E01801, 0x80C98000, 0x80B78000, 0x80A18008)


class AscendScene(Scene):
    device = "npu3"

    def __init__(self, node: EmulatedNode, sysfs: Path) -> None:
        self._node = node
        self._sysfs = sysfs
        self._faults = 0

    def spec(self, **given: Any) -> WorkerSpec:
        return ascend_spec(self._node.dcmi, self._sysfs, **given)

    def fault(self) -> str:
        code = CODES[self._faults]
        self._faults += 1
        self._node.raise_code(self.device, code, severity=2)
        return f"{code:08X}"

    def remove_library(self) -> None:
        self._node.dcmi.rename(self._hidden)

    def remove_devices(self) -> None:
        for device in self._node.names():
            self._node.take_out(device)

    def make_busy(self) -> str:
        self._node.answer(-8020, self.device, "dcmi_get_device_errorcode_v2")
        return "resource occupied"

    def babble(self) -> None:
        node = self._node
        for event_id in (0, 0xFFFFFFFF):
            node.send_event(self.device, event_id, 1)
        node.send_event(self.device, 0x80E01801, 7)
        node.set_node("unterminated", 1)
        node.set("npu2", "code_count_lie", 10_000)
        node.set("npu4", "code_count_lie", -1)
        node.set("npu5", "process_count_lie", -1)
        node.set("npu6", "health_lie", 77)

    def lose_device(self) -> None:
        self._node.answer(-8008, self.device)

    def restore(self) -> None:
        if self._hidden.exists():
            self._hidden.rename(self._node.dcmi)
        for device in self._node.names():
            self._node.return_(device)
        self._node.release()

    @property
    def _hidden(self) -> Path:
        return self._node.dcmi.with_name("hidden")


class TestAscend(DriverContract):
    @pytest.fixture
    def scene(self, node: EmulatedNode, tmp_path: Path) -> Scene:
        return AscendScene(node, tmp_path / "sys")
