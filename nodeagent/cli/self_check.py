"""A look at the node without a daemon: each source is read once, judged by tables and core; nothing is kept.

It runs the daemon's own supervisors over real workers, so it sees what the daemon would see at its start.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent import __version__
from nodeagent.config import Config
from nodeagent.core.engine import Engine
from nodeagent.core.model import NODE, CatalogChanged, DeviceSeen, Kind, SourceBack, SourceLost, Started
from nodeagent.daemon import identity, workers
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.delivery import Delivery
from nodeagent.daemon.supervisor import Supervisor
from nodeagent.outlets import messages
from nodeagent.outlets.pb import types_pb2
from nodeagent.store.records import Publication, StoreId
from nodeagent.tables.load import load_catalog

DEADLINE_S: Final = 15.0
"""Longer than the default deadline of a call, so that one device that hangs is told by its name."""

LOOK_EACH_S: Final = 0.05
"""Of a source that is not here nothing is told: this often is asked whether it is one."""


@dataclass(frozen=True, slots=True)
class Findings:
    """``unread`` says of each source that could not be read why not."""

    devices: Sequence[types_pb2.Device]
    unread: Sequence[str]


def look(config: Config, folders: Sequence[Path]) -> Findings:
    """Raises TablesError."""
    return asyncio.run(_look(config, folders))


async def _look(config: Config, folders: Sequence[Path]) -> Findings:
    catalog = load_catalog(folders, config.settings()).catalog
    clock = carry_on(None, identity.boot_id())
    engine = Engine({catalog.digest: catalog})
    engine.step(clock.rule_ns(), CatalogChanged(digest=catalog.digest))
    engine.step(clock.rule_ns(), Started(boot_id=clock.boot_id, version=__version__))
    engine.step(
        clock.rule_ns(),
        DeviceSeen(source="agent", device=NODE, kind=Kind.NODE, vendor="", identity=identity.machine_id()),
    )
    sources = _Sources(engine, clock.rule_ns)
    supervisors = workers.supervisors(config, catalog, clock, {}, sources.deliver, engine.view())
    sources.awaited = {supervisor.name for supervisor in supervisors}
    running = [asyncio.create_task(supervisor.run()) for supervisor in supervisors]
    try:
        await sources.read(supervisors, DEADLINE_S)
    finally:
        await asyncio.gather(*(supervisor.stop() for supervisor in supervisors))
        await asyncio.gather(*running, return_exceptions=True)
    late = [f"{name}: not read within {DEADLINE_S:g} s" for name in sorted(sources.awaited)]
    publication = Publication(
        view=engine.view(),
        store_id=StoreId(uuid="", epoch=0),
        seq=0,
        durable=False,
        wall_offset_ns=clock.wall_offset_ns(),
    )
    return Findings(messages.Scene(publication).devices(), [*sources.unread, *late])


class _Sources:
    """Steps the engine with what comes, and knows which sources have been read to their end."""

    def __init__(self, engine: Engine, now_ns: Callable[[], int]) -> None:
        self._engine = engine
        self._now_ns = now_ns
        self._told = asyncio.Condition()
        self.awaited: set[str] = set()
        self.unread: list[str] = []

    async def deliver(self, delivery: Delivery) -> None:
        for given in delivery.inputs:
            self._engine.step(self._now_ns(), given)
            if isinstance(given, SourceLost) and not given.device and given.source in self.awaited:
                self.unread.append(f"{given.source}: {given.reason}")
                self.awaited.discard(given.source)
            elif isinstance(given, SourceBack) and not given.device:
                self.awaited.discard(given.source)
        async with self._told:
            self._told.notify_all()

    async def read(self, supervisors: Iterable[Supervisor], deadline_s: float) -> None:
        """Returns when none is awaited any more, or the deadline has passed. What is not here is left out."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s), self._told:
                while self.awaited:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_EACH_S):
                            await self._told.wait()
                    self.awaited -= {each.name for each in supervisors if each.health().absent}
