"""The daemon in the simulation: its own pump, rebuild and clock, over a log in memory and the world's time.

Only what would wait for a machine is stood in for. The process may die at every point that the log and
the board name, and a new one begins with what was durable.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from nodeagent.core.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import NODE, CatalogChanged, DeviceSeen, Input, Kind, Started
from nodeagent.daemon import rebuild
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.delivery import Delivery
from nodeagent.daemon.pump import Pump
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, StoredEvent
from tests.simulation.catalogs import catalogs
from tests.simulation.durable import DurableLog, Killed, MortalBoard
from tests.simulation.history import Observed, Turn
from tests.simulation.watch import Watch
from tests.simulation.world import World

T = TypeVar("T")

NODE_SEEN = DeviceSeen(source="agent", device=NODE, kind=Kind.NODE, vendor="", identity="machine-1")


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run what never has to wait here."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    raise AssertionError("the shell waits for something that the simulation does not have")


class _Log(DurableLog):
    def __init__(self, shell: "Shell") -> None:
        super().__init__()
        self._shell = shell

    def written(self, stored: tuple[StoredEvent, ...]) -> None:
        self._shell.written(stored)

    def rests_on_base(self) -> None:
        self._shell.written(())


class _Board(MortalBoard):
    def __init__(self, shell: "Shell") -> None:
        super().__init__(shell.log)
        self._shell = shell

    def published(self, publication: Publication, events: tuple[StoredEvent, ...]) -> None:
        self._shell.watch.published(publication, events, self._shell.log.last_seq)


class Shell:
    """One node's daemon over all of its lives. ``killed`` counts deaths by the point where they came."""

    def __init__(self, world: World, watch: Watch) -> None:
        self.world = world
        self.watch = watch
        self.log = _Log(self)
        self.killed: dict[str, int] = {}
        self._known: dict[str, Catalog] = {}
        self._engine: Observed | None = None
        self._pump: Pump | None = None

    @property
    def runs(self) -> bool:
        return self._pump is not None

    @property
    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine.engine

    def start(self) -> None:
        """A new process: replay, compare, and its first turn. It may die in the middle of it."""
        world, log = self.world, self.log
        recovery = log.recovery()
        clock = carry_on(recovery.anchor, world.boot_id, world.boottime_ns, world.wall_ns)
        self._known = dict(catalogs())
        try:
            engine, differences = complete(rebuild.rebuild(cast(Ledger, log), recovery, self._known))
            self.watch.rebuilt(engine, differences)
            log.die_at("after the rebuild")
            world.rule_of_boottime = clock.rule_of_boottime
            self._engine = Observed(engine, self._known, lambda: world.true_ns)
            self._pump = Pump(
                cast(Engine, self._engine), cast(Ledger, log), _Board(self), clock, lambda: None
            )
            tables: tuple[Input, ...] = ()
            if engine.digest != world.digest:
                tables = (CatalogChanged(digest=world.digest),)
            started = Started(boot_id=world.boot_id, version="simulated")
            self.watch.starts()
            complete(self._pump.begin(differences, (started, NODE_SEEN, *tables)))
            self._pump.finish()
        except Killed as killed:
            self._die(str(killed))
        world.listening = self.runs

    def deliver(self, *inputs: Input) -> None:
        """A turn with these; without any, only time has passed."""
        pump = self._pump
        if pump is None:
            return
        try:
            complete(pump.submit(Delivery(source="simulation", inputs=inputs)))
            complete(pump.run())
        except Killed as killed:
            self._die(str(killed))
        else:
            self.watch.rests(self.engine, pump.queued)

    def compact(self) -> None:
        if self._pump is None:
            return
        try:
            complete(self._pump.compact())
        except Killed as killed:
            self._die(str(killed))

    def stop(self, where: str = "killed while idle") -> None:
        if self.runs:
            self._die(where)

    def written(self, stored: tuple[StoredEvent, ...]) -> None:
        """The turn's steps have become part of history."""
        assert self._engine is not None
        steps, self._engine.steps = tuple(self._engine.steps), []
        self.watch.committed(Turn(steps=steps, stored=stored))

    def _die(self, where: str) -> None:
        self.killed[where] = self.killed.get(where, 0) + 1
        self._engine = self._pump = None
        self.world.listening = False
        self.log.armed = ""
