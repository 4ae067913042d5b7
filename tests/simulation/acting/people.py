"""What jobs and people do around resets: use chips, ask, approve, isolate, quiesce, repair."""

from collections.abc import Callable
from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    NODE,
    Claims,
    Holder,
    SourceLost,
)
from tests.core.build import order
from tests.simulation.acting.hardware import group_of
from tests.simulation.acting.looking_after import (
    a_free_chip,
    begin,
    free,
    hold,
    looked_after,
    poll_group,
)
from tests.simulation.acting.tables import ASKING_CODES
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip, about
from tests.simulation.world import Activity, Does, World

_WHO = ("uid:1000", "uid:2000")


def works(world: World) -> Activity:
    """A job takes a part, by process or claim or both, and leaves it; meanwhile a fault may ask."""
    part = a_chip(world)
    other = world.rng.choice(group_of(world, part))
    by_process = world.rng.random() < 0.7
    by_claim = not by_process or world.rng.random() < 0.3
    job = f"slurm:{world.rng.randint(1, 9)}"
    if world.rng.random() < 0.5:
        free(world, part)
    if by_claim:
        world.say(Claims(device=other.name, job=job, kind="training", claimed=True))
    if by_process:
        hold(world, other, (Holder(pid=world.rng.randint(1, 99), start_time=1, command="python", job=job),))
    if world.rng.random() < 0.7:
        begin(world, part, world.rng.choice(ASKING_CODES))
    yield from looked_after(world, part, world.rng.choice((4, 10)))
    yield world.rng.choice((0, MINUTE_NS, HOUR_NS, 2 * HOUR_NS))
    hold(world, other, ())
    if by_claim:
        world.say(Claims(device=other.name, job=job, kind="training", claimed=False))
    yield from looked_after(world, part, 10)


def takes_it_at_the_last_moment(world: World) -> Activity:
    """A job comes while a reset is announced, at times on a member of which nothing is read then."""
    part = a_free_chip(world)
    other = world.rng.choice(group_of(world, part))
    begin(world, part, "RestartNPU")
    yield world.rng.choice((10, 25, 29)) * SECOND_NS
    poll_group(world, part)
    if silent := other is not part and world.rng.random() < 0.6:
        other.heard = False
        world.say(SourceLost(source=other.source, reason="late", device=other.name))
    hold(world, other, (Holder(pid=7, start_time=2, command="python", job="slurm:77"),))
    yield from looked_after(world, part, 8)
    if silent:
        other.heard = True
        yield from looked_after(world, part, 2)
    hold(world, other, ())
    yield from looked_after(world, part, 8)
    world.recover(part, "RestartNPU")


def wants_a_reset(world: World) -> Activity:
    part = a_free_chip(world)
    who = world.rng.choice(_WHO)
    world.say(order("reset", part.name, who, once=who == _WHO[0]))
    yield from looked_after(world, part, 12)


def isolates(world: World) -> Activity:
    """Before a fault or while a reset is pending."""
    part = a_free_chip(world)
    if early := world.rng.random() < 0.5:
        begin(world, part, "RestartNPU")
    who, other = world.rng.choice(_WHO), world.rng.choice(group_of(world, part))
    yield world.rng.choice((0, SECOND_NS, 20 * SECOND_NS))
    world.say(order("isolate", other.name, who))
    if not early:
        begin(world, part, "RestartNPU")
    yield from looked_after(world, part, 6)
    world.say(order("release", other.name, who))
    yield from looked_after(world, part, 8)
    world.recover(part, "RestartNPU")


def quiesces(world: World) -> Activity:
    """Before a fault or while a reset is pending; ended by its owner, by force or by its time.

    A shorter order after it changes nothing.
    """
    part, who = a_free_chip(world), world.rng.choice(_WHO)
    begin(world, part, "RestartNPU")
    yield world.rng.choice((0, SECOND_NS, 20 * SECOND_NS))
    until_ns = world.rule_ns(world.true_ns) + about(world, 2 * MINUTE_NS)
    bounded = world.rng.random() < 0.3
    quiesce = order("quiesce", NODE, who, until_ns=until_ns if bounded else None)
    world.say(quiesce, replace(quiesce, until_ns=until_ns - MINUTE_NS))
    yield from looked_after(world, part, 10)
    if world.rng.random() < 0.3:
        world.say(order("resume", NODE, "uid:3000", reason="not mine"))
        yield from looked_after(world, part, 3)
    world.say(order("resume", NODE, "uid:3000", force=True) if who == _WHO[1] else order("resume", NODE, who))
    yield from looked_after(world, part, 10)


def repairs(world: World) -> Activity:
    """Somebody saw to it: what only a person may clear is cleared."""
    for part in world.chips():
        world.say(order("release", part.name, reason="repaired"))
        yield SECOND_NS


def disk_is_full(world: World) -> Activity:
    """The store is not durable for a while, with a fault in the middle."""
    part = a_free_chip(world)
    shell = world.degrade
    world.act(Does(lambda: shell("disk full")))
    yield world.rng.choice((0, SECOND_NS))
    begin(world, part, "RestartNPU")
    yield from looked_after(world, part, 6)
    world.act(Does(lambda: shell("")))
    yield from looked_after(world, part, 10)
    world.recover(part, "RestartNPU")


def all_leave(world: World) -> None:
    """In the end nobody uses anything and nothing is quiesced."""
    for part in world.parts:
        part.holders = ()
        world.report_holders(part)
        for number in range(1, 10):
            job = f"slurm:{number}"
            world.say(Claims(device=part.name, job=job, kind="training", claimed=False))
    world.say(order("resume", NODE, reason="the end", force=True))


PEOPLE: tuple[Callable[[World], Activity], ...] = (
    works,
    works,
    takes_it_at_the_last_moment,
    wants_a_reset,
    isolates,
    quiesces,
    repairs,
    repairs,
    disk_is_full,
)
