"""The BMC keeps the contract of all drivers."""

import errno
from typing import Any

import pytest

from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.bmc import BmcFault
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.contract import DriverContract, Inapplicable, Scene
from tests.drivers.worker_specs import bmc_spec


class BmcScene(Scene):
    device = "node"

    def __init__(self, node: EmulatedNode) -> None:
        self._node = node
        self._codes = iter((0x0000001D, 0x01000017, 0x02000007, 0x03000009, 0x06000025))

    def spec(self, **given: Any) -> WorkerSpec:
        return bmc_spec(self._node, **given)

    def fault(self) -> str:
        code = next(self._codes)
        self._node.bmc.raise_fault(BmcFault(code))
        return f"{code:08X}"

    def remove_library(self) -> None:
        self._node.set_node("bmc_present", 0)

    def remove_devices(self) -> None:
        raise Inapplicable("a BMC has no devices of its own")

    def make_busy(self) -> str:
        self._node.bmc.answer("busy")
        return "busy"

    def babble(self) -> None:
        self._node.bmc.answer("garbage", times=4)

    def lose_device(self) -> None:
        # The kernel's driver has let go of the BMC.
        self._node.answer(errno.ENODEV, None, "ioctl")

    def restore(self) -> None:
        self._node.set_node("bmc_present", 1)
        self._node.bmc.answer("well")
        self._node.release()


class TestBmc(DriverContract):
    @pytest.fixture
    def scene(self, node: EmulatedNode) -> Scene:
        return BmcScene(node)
