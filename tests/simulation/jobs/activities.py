"""What befalls nodes with supervised jobs: faults under them, jobs beside them, and people."""

from collections.abc import Callable

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import NODE, Claims, Holder
from tests.core.build import order
from tests.simulation.acting.hardware import grouped_parts
from tests.simulation.acting.looking_after import begin, is_over, looked_after
from tests.simulation.acting.people import all_leave
from tests.simulation.acting.tables import ASKING_CODES, USER
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip
from tests.simulation.interruptions import boots_again, dies, hangs_one, is_compacted, loses_a_source, reloads
from tests.simulation.jobs.supervisor import supervises
from tests.simulation.world import Activity, Part, World

_ENDS = ("well", "well", "well", "well", "stays", "returns", "silent")
_LEVELS = (*ASKING_CODES, "SeparateNPU", "PreSeparateNPU")


def free_parts() -> list[Part]:
    """Grouped as those of a node that resets them, and nobody on them."""
    parts = grouped_parts()
    for part in parts:
        part.holders = ()
    return parts


def _in_use(world: World) -> Part:
    used = [part for part in world.chips() if part.holders]
    return world.rng.choice(used) if used and world.rng.random() < 0.8 else a_chip(world)


def breaks_under_a_job(world: World) -> Activity:
    part = _in_use(world)
    part.when_reset = world.rng.choice(_ENDS)
    code = world.rng.choice(_LEVELS)
    begin(world, part, code)
    yield from looked_after(world, part, world.rng.choice((10, 30, 50)))
    part.when_reset = "well"
    is_over(world, part, code, reported=world.rng.random() < 0.8)
    yield from looked_after(world, part, 2)


def is_hit_by_its_own_fault(world: World) -> Activity:
    part = _in_use(world)
    for _ in range(world.rng.randint(1, 4)):
        world.once(part, USER)
        yield world.rng.choice((SECOND_NS, 30 * SECOND_NS, 5 * MINUTE_NS))
    world.recover(part, USER)


def works_beside(world: World) -> Activity:
    """A job without a supervisor, which its scheduler places on no chip that is to be reset."""
    part = a_chip(world)
    if world.proposed or part.active or part.holders:
        return
    number = world.rng.randint(7, 9)
    job = f"slurm:{number}"
    mine = Holder(pid=number, start_time=1, command="python", job=f"{job}.0")
    boot = world.boot
    world.say(Claims(device=part.name, job=job, kind="training", claimed=True))
    part.holders = (*(part.holders or ()), mine)
    world.report_holders(part)
    yield world.rng.choice((MINUTE_NS, 10 * MINUTE_NS, HOUR_NS))
    part.holders = tuple(one for one in part.holders or () if one != mine)
    world.report_holders(part)
    if world.boot == boot:
        world.say(Claims(device=part.name, job=job, kind="training", claimed=False))


def is_ordered(world: World) -> Activity:
    """An operator stops a job, or runs it again."""
    names = sorted(world.wanted) or ["slurm:1.0"]
    name = world.rng.choice(names)
    what = world.rng.choice(("stop_job", "stop_job", "rerun_job"))
    world.say(order(what, NODE, only=name))
    yield world.rng.choice((SECOND_NS, 90 * SECOND_NS, 20 * MINUTE_NS))
    world.say(order("rerun_job", NODE, only=name))


def is_isolated(world: World) -> Activity:
    part = _in_use(world)
    world.say(order("isolate", part.name))
    yield world.rng.choice((SECOND_NS, 5 * MINUTE_NS))
    world.say(order("release", part.name, force=True))


def wants_a_reset(world: World) -> Activity:
    part = _in_use(world)
    world.say(order("reset", part.name))
    yield from looked_after(world, part, 20)
    for _ in range(3):
        world.say(order("refuse", part.name))
        yield MINUTE_NS


def is_repaired(world: World) -> Activity:
    """Somebody saw to it: what only a person may clear is cleared."""
    for part in world.chips():
        world.say(order("release", part.name, reason="repaired", force=True))
    world.say(order("release", NODE, reason="repaired", force=True))
    yield SECOND_NS


def all_end(world: World) -> None:
    for part in world.parts:
        part.holders = ()
    all_leave(world)


JOBS: tuple[Callable[[World], Activity], ...] = (supervises,)
FAULTS: tuple[Callable[[World], Activity], ...] = (
    breaks_under_a_job,
    breaks_under_a_job,
    breaks_under_a_job,
    is_hit_by_its_own_fault,
    works_beside,
    works_beside,
    is_ordered,
    is_isolated,
    wants_a_reset,
    is_repaired,
    is_repaired,
)
INTERRUPTIONS: tuple[Callable[[World], Activity], ...] = (
    dies,
    dies,
    dies,
    dies,
    is_compacted,
    boots_again,
    reloads,
    loses_a_source,
    hangs_one,
)
