"""A look at the node without a daemon: what the store says of it, and each source read once; nothing is kept.

It runs the daemon's own engine and supervisors, over real workers, so it sees what the daemon would see at
its start: what a person took out of service stays so, a fault that is over is over.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.api import messages
from nodeagent.cli.offline import stored_state
from nodeagent.cli.offline.wait_limit import WaitLimit
from nodeagent.config.config import Config
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    AGENT,
    NODE,
    CatalogChanged,
    DeviceSeen,
    Input,
    Kind,
    SourceAbsent,
    SourceBack,
    SourceLost,
)
from nodeagent.daemon import host_ids
from nodeagent.daemon.clock import Clock, carry_on
from nodeagent.daemon.delivery import Delivery
from nodeagent.daemon.sources import configured
from nodeagent.daemon.sources.supervisor import Supervisor
from nodeagent.daemon.workers.lifecycle import State
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Publication, StoreId
from nodeagent.tables.load import load_catalog

LOOK_EACH_S: Final = 0.05
"""How often it is looked whether a source takes too long."""


@dataclass(frozen=True, slots=True)
class Findings:
    """``unread`` says why the store could not be read, if it could not. How sources are is in the devices."""

    devices: Sequence[types_pb2.Device]
    unread: Sequence[str]


def look(config: Config, folders: Sequence[Path], report: Callable[[str], None]) -> Findings:
    """``report`` gets what is waited for, where that takes long. Raises TablesError."""
    return asyncio.run(_look(config, folders, report))


async def _look(config: Config, folders: Sequence[Path], report: Callable[[str], None]) -> Findings:
    loaded = load_catalog(folders, config.settings()).catalog
    catalogs = {loaded.digest: loaded}
    unreadable = []
    try:
        last = stored_state.read(config.agent, catalogs, lambda: loaded)
    except stored_state.Unreadable as error:
        last, unreadable = None, [f"what was known of this node cannot be read: {error}"]
    clock = carry_on(last.anchor if last else None, host_ids.boot_id())
    engine = last.engine if last else Engine(catalogs)
    for given in _first_inputs(config, engine, clock, loaded.digest):
        engine.step(clock.rule_ns(), given)
    sources = _Sources(engine, clock.rule_ns)
    cursors = last.cursors if last else {}
    supervisors = configured.supervisors(
        config, loaded, clock, cursors, sources.deliver, engine.view(), hurry=True
    )
    sources.awaited = {supervisor.name for supervisor in supervisors}
    running = [asyncio.create_task(supervisor.run()) for supervisor in supervisors]
    try:
        await sources.read(supervisors, WaitLimit(time.monotonic(), report))
    finally:
        await asyncio.gather(*(supervisor.stop() for supervisor in supervisors))
        await asyncio.gather(*running, return_exceptions=True)
    return Findings(_devices(engine, clock), unreadable)


def _first_inputs(config: Config, engine: Engine, clock: Clock, digest: str) -> Iterator[Input]:
    """The inputs with which a daemon begins."""
    yield configured.started(config, clock)
    yield DeviceSeen(source=AGENT, device=NODE, kind=Kind.NODE, vendor="", identity=host_ids.machine_id())
    yield from configured.switched_off(config, engine.view())
    yield CatalogChanged(digest=digest)


def _devices(engine: Engine, clock: Clock) -> list[types_pb2.Device]:
    """As they stand. After a start the last verdict stands for a while until a device is read: here, where
    nobody will look again, it does not.
    """
    publication = Publication(
        view=engine.view(),
        store_id=StoreId(uuid="", epoch=0),
        seq=0,
        durable=False,
        wall_offset_ns=clock.wall_offset_ns(),
    )
    devices = messages.Published(publication).devices()
    for device in devices:
        if not device.observed and device.verdict == types_pb2.VERDICT_ALLOW:
            device.verdict = types_pb2.VERDICT_UNKNOWN
    return devices


class _Sources:
    """Steps the engine with what comes, and knows which sources have been read to their end. One that takes
    too long is lost.
    """

    def __init__(self, engine: Engine, now_ns: Callable[[], int]) -> None:
        self._engine = engine
        self._now_ns = now_ns
        self._reported = asyncio.Condition()
        self.awaited: set[str] = set()

    async def deliver(self, delivery: Delivery) -> None:
        for given in delivery.inputs:
            self._step(given)
        async with self._reported:
            self._reported.notify_all()

    async def read(self, supervisors: Collection[Supervisor], wait_limit: WaitLimit) -> None:
        """Returns when all that is awaited was read, is lost, or is not here."""
        async with self._reported:
            while self.awaited:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EACH_S):
                        await self._reported.wait()
                for each in supervisors:
                    self._look_at(each, wait_limit)

    def _look_at(self, supervisor: Supervisor, wait_limit: WaitLimit) -> None:
        name = supervisor.name
        if name not in self.awaited:
            return
        opening = supervisor.health().state == State.STARTING
        if why := wait_limit.why_over(name, time.monotonic(), opening=opening):
            self._step(SourceLost(source=name, reason=why))

    def _step(self, given: Input) -> None:
        self._engine.step(self._now_ns(), given)
        if isinstance(given, SourceBack | SourceLost | SourceAbsent) and not getattr(given, "device", ""):
            self.awaited.discard(given.source)
