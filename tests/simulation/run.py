"""One simulation: a seed and a number of hours in, what was seen out. Equal seeds give equal bytes."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest.mock import patch

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import CatalogChanged, Edge
from nodeagent.daemon import pump
from tests.core.build import order
from tests.simulation.faults import HOUR_NS, MINUTE_NS
from tests.simulation.history import Broken, Step
from tests.simulation.interruptions import DAY_NS, SOURCES
from tests.simulation.lives import LIVES, Life
from tests.simulation.shell import Shell
from tests.simulation.transitions import Transitions
from tests.simulation.watch import Invariant, Watch
from tests.simulation.world import Act, Activity, Compact, Crash, Does, Reboot, Reload, Said, World


@dataclass(slots=True)
class Result:
    """``broken`` is what an invariant found, "" if all hold. ``digest`` is of every byte written."""

    seed: int
    digest: str = ""
    broken: str = ""
    invariant: str = ""
    turns: int = 0
    events: int = 0
    killed: dict[str, int] = field(default_factory=dict)
    transitions: Transitions = field(default_factory=Transitions)


def simulate(
    seed: int,
    hours: float,
    on_step: Callable[[Step], None] | None = None,
    judged: bool = True,
    life: str = "rules",
) -> Result:
    """Play it. ``on_step`` sees each committed step; not ``judged``: no invariant is looked at."""
    result = Result(seed=seed)
    lived = LIVES[life]
    world = World(seed, lived.parts(), lived.digests(seed))
    watchers: list[Invariant] = [result.transitions]
    if on_step is not None:
        watchers.append(_Listener(on_step))
    if judged:
        watchers += lived.invariants()
    watch = Watch(watchers, world)
    node = _Node(world, watch, lived)
    with _time_of(world):
        try:
            node.live(hours)
        except Broken as broken:
            result.broken, result.invariant = str(broken), broken.invariant
    result.digest = node.shell.log.digest
    result.turns, result.events, result.killed = watch.turns, node.shell.log.last_seq, node.shell.killed
    return result


class _Listener(Invariant):
    def __init__(self, on_step: Callable[[Step], None]) -> None:
        self._on_step = on_step

    def on_step(self, step: Step) -> None:
        self._on_step(step)


@contextmanager
def _time_of(world: World) -> Iterator[None]:
    """The pump's own pauses (heartbeat, hourly compaction) follow the simulated time too."""
    with patch.object(pump, "time", SimpleNamespace(monotonic=lambda: world.true_ns / SECOND_NS)):
        yield


class _Node:
    """The world and the shell, moved on together."""

    def __init__(self, world: World, watch: Watch, life: Life) -> None:
        self.world = world
        self.shell = Shell(world, watch, life.catalogs())
        self._life = life
        self._watch = watch
        self._wakes = random.Random(world.rng.random())
        self._down_ns = 0
        self._restarts = False

    def live(self, hours: float) -> None:
        self._start()
        self.world.begin(_days(self.world, self._life, round(hours * HOUR_NS)))
        self._play()
        self.world.begin(_rest(self.world, self._life))
        self._play()
        self._wake_until(self.world.true_ns + 12 * DAY_NS, always=True)
        self.world.true_ns += 12 * DAY_NS
        self.shell.deliver()
        self._watch.ended(self.shell.engine)

    def _play(self) -> None:
        while (at_ns := self.world.next_ns()) is not None:
            self._wake_until(at_ns)
            for act in self.world.go_on():
                self._do(act)
                self._look_after()

    def _wake_until(self, until_ns: int, always: bool = False) -> None:
        """The pump's turns at the deadlines of the core: at the very time, late, or not before an input."""
        while self.shell.runs:
            deadline_ns = self.shell.engine.next_deadline()
            if deadline_ns is None:
                return
            until_ns = min(until_ns, self.world.next_ns() or until_ns)
            at_ns = self.world.true_ns + deadline_ns - self.world.rule_ns(self.world.true_ns)
            if at_ns >= until_ns or not (always or self._wakes.random() < 0.8):
                return
            late_ns = self._wakes.choice((0, 0, 0, 1_000_000, SECOND_NS))
            self.world.true_ns = max(self.world.true_ns, min(at_ns + late_ns, until_ns - 1))
            self.shell.deliver()
            self._look_after()

    def _do(self, act: Act) -> None:
        match act:
            case Said(inputs):
                self.shell.deliver(*inputs)
                if self._wakes.random() < 0.03:
                    self.shell.deliver(*inputs)
            case Crash():
                self._crash(act)
            case Reboot():
                self.shell.stop("rebooted")
                self.shell.actuator.reboots()
                self.world.reboots(act)
                self._down_ns = 0
            case Reload(digest):
                self.world.digest = digest
                self.shell.deliver(CatalogChanged(digest=digest))
            case Compact():
                self.shell.compact()
            case Does(work):
                work()

    def _crash(self, crash: Crash) -> None:
        self._down_ns = crash.down_ns
        if crash.where == "idle":
            self.shell.stop()
            return
        self.shell.log.armed = crash.where
        if crash.where.endswith("compaction"):
            self.shell.compact()
        elif crash.where == "after the rebuild":
            self.shell.stop("before a start that is cut short")
            self.shell.log.armed = crash.where
            self.shell.start()

    def _look_after(self) -> None:
        """The service manager: a daemon that died is started again."""
        if not self.shell.runs and not self._restarts:
            self._restarts = True
            self.world.begin(self._restart(), self._down_ns)

    def _restart(self) -> Activity:
        self._restarts = False
        self._start()
        self._look_after()
        yield 0

    def _start(self) -> None:
        world = self.world
        world.lost = {"ascend", "nvidia", "unifiedbus"}
        self.shell.start()
        if self.shell.runs:
            for source in SOURCES:
                after_ns = world.rng.choice((0, SECOND_NS, 5 * SECOND_NS, 30 * SECOND_NS, 30 * SECOND_NS + 1))
                world.begin(world.hello(source, after_ns))


def _days(world: World, life: Life, lasts_ns: int) -> Activity:
    """Activity after activity, some at once, with pauses up to hours, each begun whatever the others do."""
    yield MINUTE_NS
    end_ns = world.true_ns + lasts_ns
    while world.true_ns < end_ns:
        for _ in range(world.rng.randint(1, 4)):
            activities = world.rng.choices(life.activities, life.weights)[0]
            world.begin(world.rng.choice(activities)(world), world.rng.choice((0, SECOND_NS, 31 * SECOND_NS)))
        yield world.rng.choice(life.pauses_ns)


def _rest(world: World, life: Life) -> Activity:
    """All is well again and said so: no fault is active, every source is read, every order is lifted."""
    for part in world.parts:
        part.present = part.readable = part.heard = True
        part.when_reset = "well"
        part.active.clear()
    world.wall_error_ns = 0
    world.act(Reboot(off_ns=MINUTE_NS, wall_error_ns=0))
    yield 2 * MINUTE_NS
    world.act(Reload(digest=world.calm))
    for part in world.parts:
        yield from world.poll(part)
        world.say(Edge(source=part.source, device=part.name, rule="above-HOT", above=False, value=50.0))
    for device in ("node", "0000:20:00.0", *(part.name for part in world.parts)):
        world.say(order("release", device, reason="the end", force=True))
    life.ends(world)
    yield 0
