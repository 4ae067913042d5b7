"""The kernel log keeps the contract of all drivers."""

import sys
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import Pattern
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import worker_spec
from tests.drivers.contract import DriverContract, Inapplicable, Scene
from tests.harness.kernel_log import VanishingKernelLog


class KernelLogScene(Scene):
    device = "0000:3b:00.0"

    def __init__(self, log: VanishingKernelLog) -> None:
        self._log = log
        self._seq = 0
        self._gone = False

    def spec(self, **given: Any) -> WorkerSpec:
        defaults: dict[str, Any] = {
            "source": "kmsg",
            "command": (sys.executable, "-m", "nodeagent.worker", "kmsg"),
            "config": {"path": str(self._log.path)},
            "patterns": (
                Pattern(
                    id="XID",
                    code="XID_{n}",
                    regex=r"^NVRM: Xid \(PCI:(?P<pci>.+)\): (?P<n>\d+)",
                    device="pci",
                ),
            ),
        }
        return worker_spec("", **{**defaults, **given})

    def fault(self) -> str:
        self._seq += 1
        self._log.write(self._seq, f"NVRM: Xid (PCI:0000:3B:00): {self._seq}")
        return f"XID_{self._seq}"

    def remove_library(self) -> None:
        self._log.vanish()
        self._gone = True

    def remove_devices(self) -> None:
        raise Inapplicable("the kernel log has no devices of its own")

    def make_busy(self) -> str:
        raise Inapplicable("any number of readers may have the kernel log open")

    def babble(self) -> None:
        for nonsense in (b"no record at all\n", b"\xff\xfe\x00;\n", b"3,x,y,-;NVRM: Xid\n", b"\n", b";\n"):
            self._log.write_raw(nonsense)

    def lose_device(self) -> None:
        self._log.vanish()
        self._gone = True

    def restore(self) -> None:
        if self._gone:
            self._log.appear()


class TestKernelLog(DriverContract):
    @pytest.fixture
    def scene(self, vanishing_log: VanishingKernelLog) -> Scene:
        return KernelLogScene(vanishing_log)
