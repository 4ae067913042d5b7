"""What can happen to chips that are reset: faults that ask for it, or do not, and what comes meanwhile."""

from collections.abc import Callable
from dataclasses import replace

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    Assertion,
    DeviceGone,
)
from tests.simulation.acting.hardware import group_of
from tests.simulation.acting.looking_after import (
    a_free_chip,
    begin,
    comes_back,
    free,
    is_over,
    is_taken_out,
    looked_after,
    poll_group,
)
from tests.simulation.acting.tables import ASKING_CODES, STAYS, USER, XID
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip, about
from tests.simulation.world import Activity, Crash, Reload, World

_ENDS = ("well", "well", "well", "stays", "returns", "returns", "silent")


def breaks(world: World) -> Activity:
    """A fault that wants a reset, looked after for a while; at times it goes by itself."""
    part = a_free_chip(world)
    part.when_reset = world.rng.choice(_ENDS)
    code = world.rng.choice(ASKING_CODES)
    begin(world, part, code)
    yield from looked_after(world, part, world.rng.choice((6, 20, 40)))
    part.when_reset = "well"
    if world.rng.random() < 0.6:
        is_over(world, part, code, reported=world.rng.random() < 0.7)
    yield from looked_after(world, part, 2)


def breaks_again(world: World) -> Activity:
    """The same part again and again, until it has had all its resets; at times it is taken out meanwhile."""
    part = a_free_chip(world)
    code = world.rng.choice(ASKING_CODES)
    for _ in range(world.rng.randint(3, 6)):
        begin(world, part, code)
        yield from looked_after(world, part, 16)
        if world.rng.random() < 0.1:
            yield from is_taken_out(world, part)
        yield world.rng.choice((MINUTE_NS, 20 * MINUTE_NS, HOUR_NS))
    other = world.rng.choice(group_of(world, part))
    begin(world, other, code)
    yield from looked_after(world, other, 16)
    yield about(world, 5 * HOUR_NS + 50 * MINUTE_NS)
    is_over(world, other, code)
    begin(world, part, code)
    yield from looked_after(world, part, 16)
    is_over(world, part, code)


def breaks_after_a_window(world: World) -> Activity:
    """Three times at once, at times with another part in between, and again as the first hardly counts."""
    part = world.rng.choice((a_chip(world), *world.of_source("nvidia")))
    first_ns = world.true_ns
    for _ in range(3):
        free(world, part)
        begin(world, part, "RestartNPU")
        yield from looked_after(world, part, 24)
    if world.rng.random() < 0.3:
        yield from is_taken_out(world, part)
        free(world, part)
        begin(world, part, "RestartNPU")
        yield from looked_after(world, part, 8)
    yield max(0, first_ns + 6 * HOUR_NS + world.rng.choice((1, 60, 100, 150)) * SECOND_NS - world.true_ns)
    free(world, part)
    begin(world, part, "RestartNPU")
    yield from looked_after(world, part, 12)
    world.recover(part, "RestartNPU")


def everything_breaks(world: World) -> Activity:
    """More often than a node may reset."""
    chips = world.rng.sample(world.chips(), 5)
    for part in (*chips, *chips):
        free(world, part)
        begin(world, part, "RestartNPU")
        yield from looked_after(world, part, 10)
        world.recover(part, "RestartNPU")


def several_break(world: World) -> Activity:
    """Parts of other groups at about the same time."""
    parts = world.rng.sample(world.chips(), 3)
    for part in parts:
        free(world, part)
        begin(world, part, "RestartNPU")
        yield world.rng.choice((0, SECOND_NS, 40 * SECOND_NS))
    for _ in range(20):
        yield world.rng.choice((10, 15, 20)) * SECOND_NS
        for part in parts:
            poll_group(world, part)
    for part in parts:
        world.recover(part, "RestartNPU")


def one_of_two_is_cured(world: World) -> Activity:
    """The fault of another part of the group stays, whatever is reset."""
    part = a_free_chip(world)
    other = world.rng.choice(group_of(world, part))
    other.when_reset = "stays"
    code = world.rng.choice(("RestartNPU", STAYS))
    begin(world, other, "SubHealthFault")
    begin(world, part, code)
    yield from looked_after(world, part, 20)
    other.when_reset = "well"
    world.recover(other, "SubHealthFault")
    world.recover(part, code)


def overtaken(world: World) -> Activity:
    """Polls that take long: they were begun before what they are heard after."""
    part = world.rng.choice((a_chip(world), *world.of_source("nvidia")))
    free(world, part)
    begin(world, part, "RestartNPU", reported=world.rng.random() < 0.5)
    for _ in range(20):
        for one in group_of(world, part):
            world.begin(world.poll(one, takes_ns=world.rng.choice((0, 15, 50)) * SECOND_NS))
        yield world.rng.choice((10, 20)) * SECOND_NS
    world.recover(part, "RestartNPU")


def others_faults(world: World) -> Activity:
    """A drill, the application's own fault, and levels that want no reset, on a free part."""
    part = a_free_chip(world)
    code = world.rng.choice((USER, "injected", "injected", "SubHealthFault", "PreSeparateNPU", "SeparateNPU"))
    if code == "injected":
        drill = world.signal(part, "RestartNPU", Assertion.OCCUR)
        world.say(replace(drill, injected=True))
    else:
        begin(world, part, code)
    yield from looked_after(world, part, 5)
    if code != "injected":
        is_over(world, part, code)
    else:
        yield 10 * MINUTE_NS


def is_seen_no_more(world: World) -> Activity:
    """A fault that nobody reads for long after it was reported, and then perhaps is gone."""
    part = a_free_chip(world)
    code = world.rng.choice(("RestartNPU", XID))
    begin(world, part, code)
    yield world.rng.choice((20 * SECOND_NS, 5 * MINUTE_NS, 30 * MINUTE_NS))
    if world.rng.random() < 0.5:
        is_over(world, part, code, reported=False)
    yield from looked_after(world, part, 8)
    is_over(world, part, code)


def changes_meanwhile(world: World) -> Activity:
    """While a reset is announced the daemon dies, other tables come, or a member of the group comes back."""
    part = a_free_chip(world)
    what = world.rng.choice(("daemon", "tables", "tables", "member"))
    other = world.rng.choice([*(one for one in group_of(world, part) if one is not part), part])
    if what == "member" and other is not part:
        other.present = False
        world.say(DeviceGone(source=other.source, device=other.name, reason="off the bus"))
    code = world.rng.choice(("RestartNPU", XID))
    begin(world, part, code)
    yield world.rng.choice((SECOND_NS, 20 * SECOND_NS))
    if what == "daemon":
        world.act(Crash(where="idle", down_ns=world.rng.choice((0, SECOND_NS, MINUTE_NS))))
    elif what == "tables":
        world.act(Reload(digest=world.rng.choice(("off", "dry-run", *world.digests))))
    elif other is not part:
        comes_back(world, other)
    yield from looked_after(world, part, 10)
    world.act(Reload(digest=world.calm))
    is_over(world, part, code)
    yield from looked_after(world, part, 2)


CHIP_FAULTS: tuple[Callable[[World], Activity], ...] = (
    breaks,
    breaks,
    breaks,
    breaks,
    breaks_again,
    breaks_again,
    breaks_after_a_window,
    breaks_after_a_window,
    breaks_after_a_window,
    everything_breaks,
    changes_meanwhile,
    changes_meanwhile,
    changes_meanwhile,
    several_break,
    one_of_two_is_cured,
    overtaken,
    others_faults,
    others_faults,
    is_seen_no_more,
)
