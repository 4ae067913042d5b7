"""GPUs on a bench: an emulated node with its PCI tree, and an engine that judges what a worker reports."""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeagent import wire
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Assertion,
    CatalogChanged,
    DeviceView,
    Event,
    Input,
    Signal,
    Started,
    Tick,
)
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.sources.baselines import baselines_of, open_codes_of
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.drivers.nvidia.identity import VENDOR
from nodeagent.emulator.gpus import Gpus
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import BOOT, Staged, command, worker_spec
from tests.shipped import shipped_catalog


class GpuNode:
    """An emulated node of GPUs that PCI lists too."""

    def __init__(self, directory: Path, description: str) -> None:
        self.node = EmulatedNode.create(directory / "node", description)
        self.gpus = Gpus(self.node.state, self.node.nvml)
        self.sysfs = directory / "sys"
        self.library = self.node.nvml
        for name in self.node.names():
            self.plug(name)

    def address(self, device: str) -> str:
        return f"{self.gpus.pci(device)}.0"

    def plug(self, device: str, bound_to: str = VENDOR) -> None:
        """PCI lists it below a bridge, bound to a kernel driver."""
        address = self.address(device)
        bridge = f"{address[:7]}00.0" if address[8:10] != "00" else f"{address[:4]}:00:01.0"
        folder = self.sysfs / "devices/pci0000:00" / bridge / address
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200")):
            (folder / name).write_text(text + "\n")
        driver = self.sysfs / "bus/pci/drivers" / bound_to
        driver.mkdir(parents=True, exist_ok=True)
        (folder / "driver").unlink(missing_ok=True)
        (folder / "driver").symlink_to(driver)
        devices = self.sysfs / "bus/pci/devices"
        devices.mkdir(parents=True, exist_ok=True)
        if not (devices / address).is_symlink():
            (devices / address).symlink_to(folder)

    def unplug(self, device: str) -> None:
        """PCI lists it no more."""
        (self.sysfs / "bus/pci/devices" / self.address(device)).unlink()

    def spec(self, **given: Any) -> WorkerSpec:
        """Its worker, with time-outs a test can wait for."""
        defaults: dict[str, Any] = {
            "source": VENDOR,
            "command": command("-m", "nodeagent.worker", VENDOR),
            "config": {"library": str(self.library), "sysfs": str(self.sysfs)},
            "threshold": shipped_catalog().threshold,
            "counter": shipped_catalog().counter,
            "absent_retry_s": 0.1,
        }
        return worker_spec("", **{**defaults, **given})


@dataclass
class Judge:
    """An engine under the shipped tables, in the time of the machine; ``skip`` lets time pass at once."""

    catalog: Catalog = field(default_factory=shipped_catalog)
    events: list[Event] = field(default_factory=list)
    skipped_ns: int = 0

    def __post_init__(self) -> None:
        self.engine = Engine({self.catalog.digest: self.catalog})
        self.take(CatalogChanged(digest=self.catalog.digest))
        self.take(Started(boot_id=BOOT, version="1"))
        self._matcher = Matcher(wire.as_patterns(self.catalog.patterns))

    @property
    def now_ns(self) -> int:
        return self.rule_ns(time.clock_gettime_ns(time.CLOCK_BOOTTIME))

    def rule_ns(self, stamp_ns: int) -> int:
        return stamp_ns + self.skipped_ns

    def take(self, given: Input) -> None:
        self.events.extend(self.engine.step(self.now_ns, given).events)

    def skip(self, seconds: float) -> None:
        self.skipped_ns += round(seconds * SECOND_NS)
        self.take(Tick())

    def kernel_line(self, line: str) -> None:
        """The kernel log has this line."""
        (match,) = self._matcher.match([line])
        assert match is not None, f"no pattern matches {line!r}"
        self.take(
            Signal(
                source="kmsg",
                device=match.device,
                code=match.code,
                assertion=Assertion.ONCE,
                evidence=match.groups,
            )
        )

    def emitted(self, *kinds: str, device: str = "") -> list[tuple[str, str, str]]:
        """(kind, device, code) of the events of these kinds, on that device or any."""
        return [
            (event.kind.value, event.device, event.code)
            for event in self.events
            if event.kind.value in kinds and device in ("", event.device)
        ]

    def view(self, device: str) -> DeviceView:
        return next(view for view in self.engine.view().devices if view.name == device)

    def kept(self, spec: WorkerSpec) -> WorkerSpec:
        """The worker of a daemon that starts with what this engine knows."""
        view = self.engine.view()
        return dataclasses.replace(
            spec, baselines=baselines_of(view, VENDOR), open_codes=open_codes_of(view, VENDOR)
        )

    def open(self, device: str) -> dict[str, str]:
        """Code -> level of the conditions that are open on the device."""
        view = self.view(device)
        return {
            condition.code: condition.level.value
            for condition in self.engine.view().conditions
            if condition.device_id == view.id
        }


@contextlib.asynccontextmanager
async def judged(spec: WorkerSpec, judge: Judge) -> AsyncIterator[Staged]:
    """Run the worker; all that is delivered is judged at once."""

    async def deliver(delivery: Delivery) -> None:
        for given in delivery.inputs:
            judge.take(given)
        await stage.deliver(delivery)

    stage = Staged(SourceSupervisor(spec, deliver, judge.rule_ns))
    stage.gate.set()
    task = asyncio.create_task(stage.supervisor.run())
    try:
        yield stage
    finally:
        await stage.supervisor.stop()
        await task


class Clock:
    now_s = 10.0

    def __call__(self) -> float:
        return self.now_s
