"""The UnifiedBus switches keep the contract of all drivers."""

from pathlib import Path
from typing import Any

import pytest

from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.switches import FabricFault
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.contract import DriverContract, Inapplicable, Scene
from tests.drivers.worker_specs import switch_spec


class UnifiedBusScene(Scene):
    device = "ub3/17"

    def __init__(self, node: EmulatedNode) -> None:
        self._node = node
        self._faults = 0

    def spec(self, **given: Any) -> WorkerSpec:
        return switch_spec(self._node.lingqu, **given)

    def fault(self) -> str:
        kind = 155912 + self._faults
        self._faults += 1
        self._node.switches.raise_fault(
            FabricFault(event_type=0x00F1FEF5, sub_type=kind, chip=3, port=17, peer_device=1)
        )
        return f"[0x00f1fef5,{kind},npu,na]"

    def remove_library(self) -> None:
        self._node.lingqu.rename(self._hidden)

    def remove_devices(self) -> None:
        raise Inapplicable("a library that answers has its seven switch chips")

    def make_busy(self) -> str:
        self._node.answer(-8005, None, "lq_dcmi_get_fault_info")
        return "ioctl failed"

    def babble(self) -> None:
        self._node.set_node("unterminated", 1)
        for chip, port in ((7, 0), (0, 48), (0xFFFF, 0)):
            self._node.switches.send_event(FabricFault(event_type=0x00F1FEF5, chip=chip, port=port), 1)
        self._node.switches.send_event(FabricFault(event_type=0x00F1FEF5, chip=0, port=0), 9)
        self._node.switches.send_event(FabricFault(event_type=0, chip=0, port=0), 1)

    def lose_device(self) -> None:
        raise Inapplicable("the switches are soldered to the board, and asked every five minutes")

    def restore(self) -> None:
        if self._hidden.exists():
            self._hidden.rename(self._node.lingqu)
        self._node.release()

    @property
    def _hidden(self) -> Path:
        return self._node.lingqu.with_name("hidden")


class TestUnifiedBus(DriverContract):
    @pytest.fixture
    def scene(self, emulate: Emulate) -> Scene:
        node = emulate("16xA3")
        node.set_node("fabric_poll_ms", 0)
        return UnifiedBusScene(node)
