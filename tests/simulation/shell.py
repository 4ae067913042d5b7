"""The daemon in the simulation: its own pump, rebuild and clock, over a log in memory and the world's time.

Only what would wait for a machine is stood in for. The process may die at every point that the log and
the event feed name, and a new one begins with what was durable.
"""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, cast

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    NODE,
    Action,
    ActionResult,
    ActionState,
    CatalogChanged,
    DeviceSeen,
    ExpectedSource,
    Input,
    Kind,
    Started,
)
from nodeagent.daemon import rebuild
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.pump import Delivery, Pump
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, StoredEvent
from tests.simulation.acting.actuator import Actuator
from tests.simulation.durable import DurableLog, Killed, MortalFeed
from tests.simulation.history import NOT_DURABLE, Observed, Turn
from tests.simulation.watch import Watch
from tests.simulation.world import World

T = TypeVar("T")

_CRASHES = 0.04
"""How often the daemon dies with an action in its hands."""

SOURCES_READ = (
    *(
        ExpectedSource(name=name, needed=True, lists=True)
        for name in ("ascend", "nvidia", "unifiedbus", "link")
    ),
    ExpectedSource(name="kmsg", needed=True, lists=False),
)
"""There is no port, so that the source of those is absent."""

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


class _Board(MortalFeed):
    def __init__(self, shell: "Shell") -> None:
        super().__init__(shell.log)
        self._shell = shell

    def published(self, publication: Publication, events: tuple[StoredEvent, ...]) -> None:
        self._shell.watch.published(publication, events, self._shell.log.last_seq)


class Shell:
    """One node's daemon over all of its lives. ``killed`` counts deaths by the point where they came."""

    def __init__(self, world: World, watch: Watch, catalogs: Mapping[str, Catalog]) -> None:
        self.world = world
        self.watch = watch
        self.log = _Log(self)
        self.actuator = Actuator(world, watch, self._submit)
        world.degrade = self.degrade
        self.killed: dict[str, int] = {}
        self._refused: list[str] = []
        self._catalogs = catalogs
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
        log.degraded = ""
        recovery = log.recovery()
        clock = carry_on(recovery.anchor, world.boot_id, world.boottime_ns, world.wall_ns)
        self._known = dict(self._catalogs)
        try:
            rebuilt = complete(rebuild.rebuild(cast(Ledger, log), recovery, self._known))
            engine, differences = rebuilt.engine, rebuilt.differences
            self.watch.rebuilt(engine, differences)
            log.die_at("after the rebuild")
            world.rule_of_boottime = clock.rule_of_boottime
            self._engine = Observed(engine, self._known, lambda: world.true_ns)
            self._pump = Pump(
                cast(Engine, self._engine), cast(Ledger, log), _Board(self), clock, lambda: None
            )
            self._pump.act = self._act
            tables: tuple[Input, ...] = ()
            if engine.digest != world.digest:
                tables = (CatalogChanged(digest=world.digest),)
            started = Started(boot_id=world.boot_id, version="simulated", sources=SOURCES_READ)
            self.watch.starts()
            complete(self._pump.begin(differences, (started, NODE_SEEN, *tables)))
            self._pump.finish()
        except Killed as killed:
            self._die(str(killed))
        world.listening = self.runs
        world.lives += self.runs
        if self.runs:
            self._rests()
            self.actuator.take_over(self.engine.view().resets)

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
            self._rests()

    def _act(self, action: Action, durable: bool) -> None:
        """The pump hands on what is published; what is only in memory is not done."""
        if not durable:
            self._refused.append(action.id)
            return
        if self.world.rng.random() < _CRASHES:
            raise Killed("between commit and act")
        attempts = {reset.id: reset.attempt for reset in self.engine.view().resets}
        self.actuator.take(action, attempts[action.id])

    def _rests(self) -> None:
        assert self._engine is not None
        self.world.proposed = self._engine.in_progress()
        self.world.wanted = self._engine.wanted()
        refused, self._refused = self._refused, []
        for action_id in refused:
            self.deliver(
                ActionResult(action_id=action_id, state=ActionState.REFUSED, reason=NOT_DURABLE),
            )

    def _submit(self, result: ActionResult) -> bool:
        self.deliver(result)
        return self.runs

    def degrade(self, reason: str) -> None:
        """The disk is full, or well again ("")."""
        if self.runs:
            self.log.degraded = reason
            self.deliver()

    def compact(self) -> None:
        if self._pump is None or self.log.degraded:
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
        self.log.lose()
        self._refused.clear()
        self.world.listening = False
        self.log.armed = ""
