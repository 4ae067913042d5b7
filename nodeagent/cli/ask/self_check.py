"""A check of the node without a daemon: the store is read, and each source once; nothing is kept.

It runs the daemon's own engine and supervisors, over real workers, so it sees what the daemon would see at
its start: a device that a person took out of service stays so, a fault that is over is over. The store is not
changed; it may belong to a daemon that hangs.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nodeagent.api import messages
from nodeagent.config.config import Config
from nodeagent.config.sections import AgentConfig
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    NODE,
    CatalogChanged,
    DeviceSeen,
    Input,
    Kind,
    SourceAbsent,
    SourceBack,
    SourceLost,
)
from nodeagent.daemon import systemd
from nodeagent.daemon.clock import Clock, carry_on
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.rebuild import digests_of, replayed
from nodeagent.daemon.sources import configured
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.daemon.workers.lifecycle import WorkerState
from nodeagent.messages.pb import types_pb2
from nodeagent.replay import store_file
from nodeagent.replay.reading import ReplayError
from nodeagent.store import queries
from nodeagent.store.change import ConsumerRow
from nodeagent.store.disk.opening import FILE_NAME, life_of
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.records import ClockAnchor, Cursor, Publication, StoreId
from nodeagent.tables.canonical import decode_catalog
from nodeagent.tables.load import load_catalog

OPEN_DEADLINE_S: Final = 60.0
"""GPUs without persistence mode take up to 3 s each: the driver starts one when it is first opened, and stops
it with the last process that has it open (NVIDIA, Driver Persistence)."""

READ_DEADLINE_S: Final = 10.0
"""Longer than the default deadline of a call, so that one device that hangs is reported by its name."""

REPORT_AFTER_S: Final = 5.0
"""After this time a source that is waited for is shown."""

CHECK_EVERY_S: Final = 0.05
"""How often it is checked whether a source takes too long."""


class StoreUnusable(Exception):
    """A daemon ran here, and its store cannot be read: str() is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLife:
    """``engine`` and ``anchor`` are as of the last commit. Up to ``cursors`` kernel lines were read. The
    events in ``database`` have the numbers from ``oldest_seq`` to ``last_seq``, and the audit log ends with
    ``last_audit``.
    """

    engine: Engine
    anchor: ClockAnchor | None
    cursors: Mapping[str, Cursor]
    database: Path
    store_id: StoreId
    oldest_seq: int
    last_seq: int
    last_audit: int
    consumers: Sequence[ConsumerRow]


def read_stored_state(
    agent: AgentConfig, catalogs: dict[str, Catalog], stand_in: Callable[[], Catalog]
) -> LastLife | None:
    """The state that an earlier daemon left, None where none ever ran here.

    ``catalogs`` gets the catalogs of its time, and is the engine's own.

    One that the store lost or damaged is replaced by ``stand_in``. Raises StoreUnusable.
    """
    database = Path(agent.state_dir) / FILE_NAME
    if not _a_daemon_ran(agent):
        return None
    try:
        with store_file.opened(database) as connection:
            life = life_of(connection)
            recovery = life.recovery
            for digest in digests_of(recovery):
                catalogs[digest] = _kept(connection, digest) or replace(stand_in(), digest=digest)
        engine = replayed(recovery, catalogs)
    except ReplayError as error:
        raise StoreUnusable("; ".join(f"{each.file}: {each.reason}" for each in error.problems)) from error
    except Exception as error:
        # The boundary: damage may show anywhere in what was stored.
        raise StoreUnusable(f"{database}: damaged: {type(error).__name__}: {error}") from error
    return LastLife(
        engine=engine,
        anchor=recovery.anchor,
        cursors=recovery.cursors,
        database=database,
        store_id=recovery.store_id,
        oldest_seq=life.state.oldest_seq,
        last_seq=recovery.last_seq,
        last_audit=life.state.last.audit,
        consumers=life.consumers,
    )


def _kept(connection: sqlite3.Connection, digest: str) -> Catalog | None:
    """None where it is lost, or not as it was written."""
    with suppress(StoreDamagedError, ValueError):
        kept = queries.read_catalog(connection, digest)
        return None if kept is None else decode_catalog(kept)
    return None


def _a_daemon_ran(agent: AgentConfig) -> bool:
    """Whether there is its folder, or a socket that it left. One that must not be read counts as there."""
    try:
        return Path(agent.state_dir).exists() or Path(agent.socket).exists()
    except PermissionError:
        return True


class WaitLimit:
    """How long ``scan`` waits for a source: for its driver to open, then to be read.

    The time begins when it is made. ``report`` gets one line for each source whose driver takes long to open.
    """

    def __init__(self, now_s: float, report: Callable[[str], None]) -> None:
        self._begun_s = now_s
        self._report = report
        self._opening_s: dict[str, float] = {}
        self._reported: set[str] = set()

    def why_over(self, source: str, now_s: float, *, opening: bool) -> str:
        """Why the wait is over; "" while it is not. ``opening``: its worker has not sent its hello."""
        waited_s = now_s - self._begun_s
        if opening:
            self._opening_s[source] = now_s
            if waited_s >= OPEN_DEADLINE_S:
                return f"its driver was not open after {OPEN_DEADLINE_S:g} s"
            if waited_s >= REPORT_AFTER_S and source not in self._reported:
                self._reported.add(source)
                self._report(f"{source}: waiting for its driver to open, for {OPEN_DEADLINE_S:g} s at most")
        elif now_s - self._opening_s.get(source, self._begun_s) >= READ_DEADLINE_S:
            return f"not read within {READ_DEADLINE_S:g} s"
        return ""


@dataclass(frozen=True, slots=True)
class Findings:
    """``unread`` is why the store could not be read, if so. The devices show how the sources are."""

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
        last = read_stored_state(config.agent, catalogs, lambda: loaded)
    except StoreUnusable as error:
        last, unreadable = None, [f"what was known of this node cannot be read: {error}"]
    clock = carry_on(last.anchor if last else None, systemd.boot_id())
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
    yield DeviceSeen(source="agent", device=NODE, kind=Kind.NODE, vendor="", identity=systemd.machine_id())
    yield from configured.switched_off(config, engine.view())
    yield CatalogChanged(digest=digest)


def _devices(engine: Engine, clock: Clock) -> list[types_pb2.Device]:
    """The present devices. After a start of the daemon the last verdict is kept for a while, until a device
    is read:
    not here, since it is not read again.
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
    """Steps the engine with what the sources report, and knows which were read to their end. A source that
    takes too
    long is lost.
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

    async def read(self, supervisors: Collection[SourceSupervisor], wait_limit: WaitLimit) -> None:
        """Returns when all that is awaited was read, is lost, or is not here."""
        async with self._reported:
            while self.awaited:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_EVERY_S):
                        await self._reported.wait()
                for each in supervisors:
                    self._look_at(each, wait_limit)

    def _look_at(self, supervisor: SourceSupervisor, wait_limit: WaitLimit) -> None:
        name = supervisor.name
        if name not in self.awaited:
            return
        opening = supervisor.health().state == WorkerState.STARTING
        if why := wait_limit.why_over(name, time.monotonic(), opening=opening):
            self._step(SourceLost(source=name, reason=why))

    def _step(self, given: Input) -> None:
        self._engine.step(self._now_ns(), given)
        if isinstance(given, SourceBack | SourceLost | SourceAbsent) and not getattr(given, "device", ""):
            self.awaited.discard(given.source)
