"""The link driver keeps the contract of all drivers, on an RDMA port of a tree of sysfs."""

import shutil
from typing import Any

import pytest

from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import command, worker_spec
from tests.drivers.contract import DriverContract, Inapplicable, Scene
from tests.drivers.link.namespace import Namespace
from tests.drivers.link.tree import Tree


class LinkScene(Scene):
    device = "mlx5_0"

    def __init__(self, tree: Tree, network: Namespace) -> None:
        self._tree = tree
        self._network = network
        self._faults = 0
        self._away = tree.root.with_name("away")
        tree.rdma("mlx5_0", "0000:00:01.0", "0000:01:00.0")

    def spec(self, **given: Any) -> WorkerSpec:
        module = "nodeagent.drivers.link.driver"
        config = {"sysfs": str(self._tree.root), "expected_rate": "400G"}
        words = command("-m", "nodeagent.worker", "link")
        given = {"source": "link", "config": config, "command": (*self._network.within, *words), **given}
        return worker_spec(module, **given)

    def fault(self) -> str:
        self._faults += 1
        if self._faults == 1:
            self._tree.write("mlx5_0", rate="200 Gb/sec (4X HDR)")
            return "PORT_SLOW"
        self._tree.write("mlx5_0", state="1: DOWN", phys_state="2: Polling", counters__link_downed="1")
        return "PORT_DOWN"

    def remove_library(self) -> None:
        self._tree.root.rename(self._away)

    def remove_devices(self) -> None:
        raise Inapplicable("where there is no port there is nothing to open")

    def make_busy(self) -> str:
        state = self._tree.port("mlx5_0") / "state"
        state.unlink()
        state.mkdir()
        return "cannot be read: Is a directory"

    def babble(self) -> None:
        self._tree.write("mlx5_0", counters__symbol_error="-7", counters__link_downed="N/A (no PMA)")

    def lose_device(self) -> None:
        self._tree.write("mlx5_0", state="fine, thank you")

    def restore(self) -> None:
        if self._away.exists():
            shutil.rmtree(self._tree.root, ignore_errors=True)
            self._away.rename(self._tree.root)
        state = self._tree.port("mlx5_0") / "state"
        if state.is_dir():
            state.rmdir()
        self._tree.write("mlx5_0", state="4: ACTIVE")


class TestLink(DriverContract):
    @pytest.fixture
    def scene(self, tree: Tree, network: Namespace) -> Scene:
        return LinkScene(tree, network)
