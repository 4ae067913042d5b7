"""What can happen around the parts: sources fail, parts move, clocks jump, tables change, the daemon dies."""

from collections.abc import Callable
from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import DeviceGone, Loss, SourceBack, SourceLost, TablesRejected
from tests.simulation.durable import CRASH_POINTS
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip, about
from tests.simulation.world import Activity, Compact, Crash, Reboot, Reload, World

SOURCES = ("ascend", "nvidia", "unifiedbus", "kmsg")
DAY_NS = 24 * HOUR_NS
YEARS_NS = 3650 * DAY_NS


def loses_a_source(world: World) -> Activity:
    """A worker hangs or dies, and comes back."""
    source = world.rng.choice(SOURCES)
    how = world.rng.choice((Loss.NOT_READ, Loss.NOT_RUNNING))
    world.lose(source, "no answer" if how is Loss.NOT_READ else "worker killed by signal 11", how)
    yield about(world, world.rng.choice((1, 20, 30, 60, 600)) * SECOND_NS)
    yield from world.hello(source, 0)


def hangs_one(world: World) -> Activity:
    """The driver does not answer for one device."""
    part = a_chip(world)
    part.heard = False
    world.say(SourceLost(source=part.source, reason="late", device=part.name))
    yield about(world, world.rng.choice((20, 60, 600)) * SECOND_NS)
    part.heard = True
    if part.source in world.lost:
        return
    world.say(SourceBack(source=part.source, device=part.name))
    yield from world.poll(part)


def drops_off(world: World) -> Activity:
    part = a_chip(world)
    part.present = False
    world.say(DeviceGone(source=part.source, device=part.name, reason="off the bus"))
    yield world.rng.choice((MINUTE_NS, HOUR_NS))
    part.present = True
    part.active.clear()
    if part.source not in world.lost:
        world.say(world.seen(part))
        yield from world.poll(part)


def is_replaced(world: World) -> Activity:
    """Another part in the slot; at times the old one comes back."""
    part = a_chip(world)
    before = part.identity
    part.identity = f"{before}'"
    part.active.clear()
    world.say(world.seen(part))
    yield from world.poll(part)
    if world.rng.random() < 0.5:
        yield world.rng.choice((MINUTE_NS, HOUR_NS))
        part.identity = before
        world.say(world.seen(part))


def is_renumbered(world: World) -> Activity:
    """Two parts of one driver change names, not slots."""
    one, other = world.rng.choice(((0, 1), (2, 3), (4, 5)))
    first, second = world.parts[one], world.parts[other]
    first.name, second.name = second.name, first.name
    world.say(world.seen(first))
    world.say(world.seen(second))
    yield 0


def is_unreadable(world: World) -> Activity:
    part = a_chip(world)
    part.readable = False
    world.say(world.seen(part))
    yield about(world, MINUTE_NS)
    part.readable = True
    world.say(world.seen(part))


def claims_a_twin(world: World) -> Activity:
    """A part answers with the id of another."""
    part, other = world.rng.sample(world.of_source(world.rng.choice(("ascend", "nvidia"))), 2)
    world.say(replace(world.seen(part), identity=other.identity))
    yield SECOND_NS
    world.say(world.seen(part))


def steps_the_clock(world: World) -> Activity:
    """The wall clock jumps, and is put right later."""
    step_ns = world.rng.choice((10 * HOUR_NS, -10 * HOUR_NS, YEARS_NS, -SECOND_NS))
    world.wall_error_ns += step_ns
    yield world.rng.choice((MINUTE_NS, HOUR_NS))
    world.wall_error_ns = 0


def boots_again(world: World) -> Activity:
    """Off for a while; at times the new boot begins in 2036 and is put right later."""
    off_ns = world.rng.choice((MINUTE_NS, 10 * MINUTE_NS, 5 * HOUR_NS))
    error_ns = world.rng.choice((0, 0, YEARS_NS, -DAY_NS))
    world.act(Reboot(off_ns=off_ns, wall_error_ns=error_ns))
    yield 10 * MINUTE_NS
    world.wall_error_ns = 0


def reloads(world: World) -> Activity:
    """Other tables, mostly for a while; at times ones that are refused."""
    if world.rng.random() < 0.2:
        world.say(TablesRejected(reason="kernel.toml:3: level"))
    world.act(Reload(digest=world.rng.choice(world.digests)))
    yield world.rng.choice((MINUTE_NS, HOUR_NS, 6 * HOUR_NS))
    if world.rng.random() < 0.7:
        world.act(Reload(digest=world.calm))


def dies(world: World) -> Activity:
    """The daemon is killed, and started again at once or late."""
    down_ns = world.rng.choice((0, SECOND_NS, SECOND_NS, 20 * SECOND_NS, 5 * MINUTE_NS))
    world.act(Crash(where=world.rng.choice((*CRASH_POINTS, "idle", "idle")), down_ns=down_ns))
    yield 0


def is_compacted(world: World) -> Activity:
    world.act(Compact())
    yield 0


INTERRUPTIONS: tuple[Callable[[World], Activity], ...] = (
    loses_a_source,
    hangs_one,
    drops_off,
    is_replaced,
    is_renumbered,
    is_unreadable,
    claims_a_twin,
    steps_the_clock,
    boots_again,
    reloads,
    dies,
    dies,
    dies,
    dies,
    is_compacted,
    is_compacted,
)
