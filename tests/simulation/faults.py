"""What can happen to the parts of a node: faults in every order that drivers have been seen to report them.

An activity waits for times that lie on, just before and just past what the rules ask for, because that is
where a rule is wrong if it is.
"""

from collections.abc import Callable

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Holder, ProcessesListed
from tests.core.build import HBM, LINK_DOWN
from tests.simulation.catalogs import (
    CHIP_CODES,
    COMPANION,
    HARD,
    HOUR_S,
    KERNEL_CODES,
    RELATED_CODES,
    ROOT,
    UNKNOWN,
    USER,
)
from tests.simulation.world import Activity, Part, World

MINUTE_NS = 60 * SECOND_NS
HOUR_NS = HOUR_S * SECOND_NS


def about(world: World, at_ns: int) -> int:
    """That long, or one nanosecond less or more, which is all the difference to a rule."""
    return at_ns + world.rng.choice((-1, 0, 0, 1, 1, SECOND_NS, -SECOND_NS))


def a_chip(world: World) -> Part:
    return world.rng.choice(world.chips())


def repeats(world: World) -> Activity:
    """One code again and again, spaced so that the last ones lie about a window apart."""
    part, code = a_chip(world), world.rng.choice((*CHIP_CODES, HARD, HBM, HBM, "RestartRequest"))
    window_ns = world.rng.choice((HOUR_NS, 2 * HOUR_NS, 2 * HOUR_NS))
    first_ns = world.rng.randrange(SECOND_NS, window_ns)
    gaps = [first_ns, about(world, window_ns) - first_ns, about(world, 30 * SECOND_NS), 10 * SECOND_NS]
    if world.rng.random() < 0.4:
        gaps.insert(1, 5 * MINUTE_NS)
    for gap_ns in gaps[: world.rng.randint(2, 5)]:
        world.occur(part, code)
        stays_ns = min(gap_ns, world.rng.choice((SECOND_NS, 10 * SECOND_NS, MINUTE_NS)))
        if world.rng.random() < 0.8:
            yield stays_ns
            world.recover(part, code)
            yield gap_ns - stays_ns
        else:
            yield gap_ns
    world.recover(part, code)


def flaps(world: World) -> Activity:
    """A link goes and comes, each about as long as its duration rule asks."""
    part = a_chip(world)
    for _ in range(world.rng.randint(1, 4)):
        world.occur(part, LINK_DOWN)
        yield about(world, world.rng.choice((5, 10, 20, 20, 20, 25)) * SECOND_NS)
        world.recover(part, LINK_DOWN)
        yield about(world, world.rng.choice((3, 30, 60, 60, 60, 70)) * SECOND_NS)


def flashes_beside(world: World) -> Activity:
    """A ``once`` of a link that is down, or has been up again for less than its rule asks."""
    part = a_chip(world)
    for _ in range(world.rng.randint(1, 3)):
        world.occur(part, LINK_DOWN)
        yield world.rng.choice((3, 8, 15)) * SECOND_NS
        world.once(part, LINK_DOWN)
        yield about(world, world.rng.choice((5, 12, 17, 30)) * SECOND_NS)
        world.recover(part, LINK_DOWN)
        yield world.rng.choice((5, 20, 40)) * SECOND_NS
        world.once(part, LINK_DOWN)
        yield about(world, world.rng.choice((20, 40, 60)) * SECOND_NS)


def volley(world: World) -> Activity:
    """The same code on several chips, within or just beyond what correlation spans."""
    code = world.rng.choice((HARD, HARD, HBM, "RestartRequest", "XID_62"))
    first = a_chip(world)
    jobs = ("job-a", "job-b") if world.rng.random() < 0.5 else ("",)
    for part in world.chips():
        holder = Holder(pid=7, start_time=1, command="python", job=world.rng.choice(jobs))
        world.say(ProcessesListed(device=part.name, holders=(holder,)))
    yield MINUTE_NS
    for _ in range(world.rng.randint(1, 3)):
        world.occur(first, code)
        yield MINUTE_NS
        world.recover(first, code)
        yield world.rng.choice((MINUTE_NS, 20 * MINUTE_NS))
    parts = [first, *world.rng.sample(world.chips(), world.rng.randint(1, 2))]
    for part in parts:
        world.occur(part, code)
        yield about(world, world.rng.choice((0, 10, 15, 30, 30)) * SECOND_NS)
    for part in parts:
        world.recover(part, code)
    yield 0


def burst(world: World) -> Activity:
    """A kernel line that comes many times at once."""
    part, code = a_chip(world), world.rng.choice((*KERNEL_CODES, "XID_62", "XID_62"))
    for _ in range(world.rng.randint(1, 4)):
        for _ in range(world.rng.randint(1, 3)):
            world.once(part, code, source="kmsg", count=world.rng.choice((1, 1, 3)))
            yield world.rng.choice((0, SECOND_NS, 20 * SECOND_NS))
        yield about(world, world.rng.choice((180, 180, 600, 600, 3600, 7200)) * SECOND_NS)


def is_seen_once(world: World) -> Activity:
    """``once`` of a driver: it stays as long as the hold, begun anew by each."""
    part, code = a_chip(world), world.rng.choice(CHIP_CODES)
    for _ in range(world.rng.randint(1, 3)):
        world.once(part, code)
        yield about(world, world.rng.choice((20, 60, 60, 60)) * SECOND_NS)
        if world.rng.random() < 0.3:
            yield from world.poll(part)
    if world.rng.random() < 0.3:
        world.occur(part, code)
        yield about(world, MINUTE_NS)
        world.recover(part, code)


def lost_callbacks(world: World) -> Activity:
    """An occurrence or a recovery that only the next poll can report; an incomplete poll comes first."""
    part, code = a_chip(world), world.rng.choice(CHIP_CODES)
    world.occur(part, code, reported=world.rng.random() < 0.4)
    yield world.rng.choice((0, SECOND_NS, 30 * SECOND_NS))
    yield from world.poll(part, complete=world.rng.random() < 0.7)
    yield about(world, world.rng.choice((1, 20, 60)) * SECOND_NS)
    world.recover(part, code, reported=world.rng.random() < 0.3)
    yield SECOND_NS
    yield from world.poll(part, complete=False)
    yield from world.poll(part)


def overtaken_poll(world: World) -> Activity:
    """A fault comes, or goes, while the poll that does not show it is under way."""
    part, code = a_chip(world), world.rng.choice(CHIP_CODES)
    if world.rng.random() < 0.5:
        world.occur(part, code)
        yield 5 * SECOND_NS
    world.begin(world.poll(part, takes_ns=3 * SECOND_NS))
    yield SECOND_NS
    if code in part.active:
        world.recover(part, code)
    else:
        world.occur(part, code)
    yield MINUTE_NS
    yield from world.poll(part)
    world.recover(part, code)


def recovers_first(world: World) -> Activity:
    """The recovery overtakes its occurrence."""
    part, code = a_chip(world), world.rng.choice(CHIP_CODES)
    world.recover(part, code)
    yield world.rng.choice((0, 1, SECOND_NS))
    world.occur(part, code)
    yield MINUTE_NS
    world.recover(part, code)


def tolerated(world: World) -> Activity:
    """A level with phases, for about as long as its tolerance."""
    part, code = a_chip(world), world.rng.choice(("RestartRequest", "RestartBusiness", "FreeRestartNPU"))
    world.occur(part, code, severity=world.rng.choice((None, 2)))
    yield about(world, world.rng.choice((15, 60, 60, 75)) * SECOND_NS)
    if world.rng.random() < 0.5:
        world.occur(part, code)
        yield about(world, MINUTE_NS)
    world.recover(part, code)


def user_faults(world: World) -> Activity:
    """The application's own faults, on chips that are held or free."""
    part, code = a_chip(world), world.rng.choice((USER, "XID_13"))
    for _ in range(world.rng.randint(2, 4)):
        if code == USER:
            world.occur(part, code)
            yield world.rng.choice((SECOND_NS, MINUTE_NS))
            world.recover(part, code)
        else:
            world.once(part, code, source="kmsg")
        yield about(world, world.rng.choice((200, 3600, 8 * 3600)) * SECOND_NS)


def together(world: World) -> Activity:
    """Several levels on one chip at once."""
    part = a_chip(world)
    codes = world.rng.sample(CHIP_CODES, 3)
    for code in codes:
        world.occur(part, code)
        yield world.rng.choice((0, SECOND_NS, MINUTE_NS))
    world.rng.shuffle(codes)
    for code in codes:
        world.recover(part, code)
        yield world.rng.choice((0, SECOND_NS))


def related_faults(world: World) -> Activity:
    """Faults that relation rules pair, and codes that nobody has named."""
    parts = world.rng.sample(world.chips(), 2)
    for _ in range(world.rng.randint(2, 5)):
        part, code = world.rng.choice(parts), world.rng.choice((*RELATED_CODES, ROOT, COMPANION))
        if code.startswith("XID"):
            world.once(part, code, source="kmsg")
        elif code in part.active:
            world.recover(part, code)
        else:
            world.occur(part, code, severity=world.rng.choice((None, None, 1, 3)))
        yield about(world, world.rng.choice((0, 5, 10, 30, 60)) * SECOND_NS)
    for part in parts:
        for code in (UNKNOWN, ROOT, COMPANION):
            world.recover(part, code)


def polls(world: World) -> Activity:
    for part in world.parts:
        yield from world.poll(part, complete=world.rng.random() < 0.8)
    yield 0


FAULTS: tuple[Callable[[World], Activity], ...] = (
    repeats,
    repeats,
    repeats,
    flaps,
    flaps,
    flashes_beside,
    volley,
    volley,
    burst,
    burst,
    is_seen_once,
    lost_callbacks,
    lost_callbacks,
    overtaken_poll,
    recovers_first,
    tolerated,
    tolerated,
    user_faults,
    user_faults,
    together,
    related_faults,
    polls,
)
