"""What else is reported of a node: its host and links, telemetry, drills, jobs, operators' orders."""

from collections.abc import Callable
from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    NODE,
    Assertion,
    CounterMark,
    Edge,
    Holder,
    Kind,
    Operator,
    ProcessesListed,
    Signal,
)
from tests.core.build import HBM
from tests.simulation.catalogs import BRIDGE_CODE, HARD, NODE_CODE, PORT_CODE, PROGRAMS_ON_NODE, STORM
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip, about
from tests.simulation.world import Activity, World


def beyond_chips(world: World) -> Activity:
    """Faults of the node, of a switch port and of a bridge above chips."""
    what = world.rng.choice((NODE_CODE, PROGRAMS_ON_NODE, PORT_CODE, BRIDGE_CODE))
    if what == PORT_CODE:
        ports = [part for part in world.parts if part.kind is Kind.UNIFIEDBUS]
        port = world.rng.choice(ports)
        world.occur(port, what)
        yield MINUTE_NS
        world.recover(port, what)
        yield from world.poll(port)
        return
    device = "0000:20:00.0" if what == BRIDGE_CODE else NODE
    for _ in range(2):
        world.say(Signal(source="kmsg", device=device, code=what, assertion=Assertion.ONCE))
        yield about(world, world.rng.choice((900, 600)) * SECOND_NS)


def readings(world: World) -> Activity:
    """Telemetry over its bound and back, and a counter that rises by about as much as is asked."""
    part = a_chip(world)
    for above in (True, world.rng.random() < 0.3, False):
        value = 95.0 if above else 80.0
        world.say(Edge(source=part.source, device=part.name, rule="above-HOT", above=above, value=value))
        yield about(world, world.rng.choice((30, 60, 60)) * SECOND_NS)
    total = world.rng.randrange(1000)
    for _ in range(world.rng.randint(2, 5)):
        metric = world.rng.choice(("corrected_total", "corrected_total", "other_total"))
        world.say(CounterMark(source=part.source, device=part.name, metric=metric, value=total))
        total = world.rng.choice((total + 40, total + 99, total + 100, 3))
        yield about(world, world.rng.choice((60, 1800, 3600)) * SECOND_NS)


def injected(world: World) -> Activity:
    """A drill beside the real thing, and a line that user space wrote."""
    part, code = a_chip(world), world.rng.choice((HARD, HBM, "SeparateNPU", STORM))
    drill = world.signal(part, code, Assertion.OCCUR)
    world.say(replace(drill, injected=True, affect_verdict=world.rng.random() < 0.5))
    yield world.rng.choice((SECOND_NS, MINUTE_NS))
    world.say(Signal(source="kmsg", device=part.pci, code="XID_79", assertion=Assertion.ONCE, trusted=False))
    yield about(world, 10 * MINUTE_NS)


def jobs(world: World) -> Activity:
    """Who holds the chips changes."""
    for _ in range(world.rng.randint(1, 4)):
        part, job = a_chip(world), world.rng.choice(("", "job-a", "job-b", None))
        holder = Holder(pid=world.rng.randint(1, 3), start_time=1, command="python", job=job or "")
        world.say(ProcessesListed(device=part.name, holders=() if job is None else (holder,)))
        yield world.rng.choice((0, SECOND_NS, MINUTE_NS))


def orders(world: World) -> Activity:
    """Operators isolate, for good or for a while, and release what is theirs, what is not, and all by force.

    All of them are root, and the same order comes again with another end.
    """
    devices = [part.name for part in world.rng.sample(world.chips(), 2)] + [NODE]
    for _ in range(world.rng.randint(2, 6)):
        owner, device = world.rng.choice(("alice", "bob")), world.rng.choice(devices)
        what = world.rng.choice(("isolate", "isolate", "release"))
        reason = world.rng.choice(("bench", "bench", "RMA"))
        until_ns = None
        if what == "isolate" and world.rng.random() < 0.6:
            until_ns = world.rule_ns(world.true_ns) + about(world, 5 * MINUTE_NS)
        force = what == "release" and world.rng.random() < 0.2
        world.say(
            Operator(
                who="uid:0",
                owner=owner,
                what=what,
                device=device,
                reason=reason,
                until_ns=until_ns,
                force=force,
            )
        )
        yield about(world, world.rng.choice((1, 60, 300)) * SECOND_NS)


def hesitates(world: World) -> Activity:
    """Somebody isolates a chip for an hour and releases it, many times."""
    part, now_ns = a_chip(world), world.rule_ns(world.true_ns)
    order = Operator(who="uid:0", owner="carol", what="isolate", device=part.name, reason="bench")
    for n in range(100):
        world.say(replace(order, until_ns=now_ns + HOUR_NS - n * SECOND_NS), replace(order, what="release"))
    yield 0


SURROUNDINGS: tuple[Callable[[World], Activity], ...] = (
    beyond_chips,
    readings,
    injected,
    jobs,
    orders,
    orders,
    hesitates,
)
