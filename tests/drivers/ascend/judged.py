"""A driver's worker under a real supervisor, whose inputs go into the core with the shipped tables."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Condition, DeviceView, Event, Input, Started
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.tables.load import load_catalog
from tests.attributes import broken
from tests.daemon.staged import BOOT, Staged

TABLES = Path(__file__).parents[3] / "fault_codes"


@cache
def shipped() -> Catalog:
    return load_catalog([TABLES], Settings()).catalog


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _begun() -> Engine:
    catalog = shipped()
    engine = Engine({catalog.digest: catalog})
    engine.step(_now_ns(), Started(boot_id=BOOT, version="test"))
    engine.step(_now_ns(), CatalogChanged(digest=catalog.digest))
    return engine


@dataclass
class Judged(Staged):
    """``events`` is all that the core made of the inputs."""

    engine: Engine = field(default_factory=_begun)
    events: list[Event] = field(default_factory=list)

    async def deliver(self, delivery: Delivery) -> None:
        for given in delivery.inputs:
            self.judge(given)
        await super().deliver(delivery)

    def judge(self, given: Input) -> None:
        self.events.extend(self.engine.step(_now_ns(), given).events)

    def kinds_of(self, device: str, code: str) -> list[str]:
        """The kinds of the events about this code on this device, in order."""
        return [event.kind.value for event in self.events if (event.device, event.code) == (device, code)]

    def open_on(self, device: str) -> dict[str, Condition]:
        """The conditions that stand, by code."""
        standing = self.engine.view().conditions
        return {each.code: each for each in standing if each.device_id == self.device(device).id}

    def device(self, name: str) -> DeviceView:
        return next(view for view in self.engine.view().devices if view.name == name)

    async def raised(self, device: str, code: str) -> Event:
        return await self._event(device, code, "raised")

    async def cleared(self, device: str, code: str) -> Event:
        return await self._event(device, code, "cleared")

    async def _event(self, device: str, code: str, kind: str) -> Event:
        wanted = (device, code, kind)
        return await self.until(
            lambda: next((e for e in self.events if (e.device, e.code, e.kind.value) == wanted), None),
            f"{code} {kind} on {device}",
        )


@contextlib.asynccontextmanager
async def judged(spec: WorkerSpec, *, ready: bool = True) -> AsyncIterator[Judged]:
    """Run it, to begin with until its first complete read was made; at the end it is stopped.

    By then the source itself has answered as well: whatever the library reports from now on is read.
    """
    stage: Judged

    async def deliver(delivery: Delivery) -> None:
        await stage.deliver(delivery)

    stage = Judged(SourceSupervisor(spec, deliver, lambda stamp_ns: stamp_ns))
    stage.gate.set()
    task = asyncio.create_task(stage.supervisor.run())
    try:
        if ready:
            await stage.back()
            await stage.until(lambda: "*" in stage.health.readings or None, "an answer of the source")
        yield stage
    finally:
        await stage.supervisor.stop()
        await task
    views = stage.engine.view().devices
    assert [each for view in views for each in broken(view.kind, view.vendor, view.attributes)] == []
