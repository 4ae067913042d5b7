"""The parts of activities around resets: a fault begins, is looked after and goes; jobs come and leave."""

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    ActionResult,
    ActionState,
    ActiveCode,
    ActiveSet,
    Claims,
    Holder,
    Operator,
)
from tests.simulation.acting.hardware import group_of
from tests.simulation.acting.tables import XID
from tests.simulation.faults import MINUTE_NS, a_chip
from tests.simulation.world import Activity, Part, World


def a_free_chip(world: World) -> Part:
    part = a_chip(world)
    if world.rng.random() < 0.85:
        free(world, part)
    return part


def free(world: World, part: Part) -> None:
    """Nobody is on its group any more, and the hooks have spoken."""
    for one in group_of(world, part):
        if one.holders != ():
            hold(world, one, ())
    if world.rng.random() < 0.3:
        world.say(Claims(device=part.name, job="epilog", kind="training", claimed=False))


def hold(world: World, part: Part, holders: tuple[Holder, ...]) -> None:
    part.holders = holders
    world.report_holders(part)


def begin(world: World, part: Part, code: str, reported: bool = True) -> None:
    if code == XID:
        # The driver reports what the kernel logs; at times only the log does.
        world.once(part, code, source=world.rng.choice(("", "", "kmsg")))
    else:
        world.occur(part, code, reported=reported)


def is_over(world: World, part: Part, code: str, reported: bool = True) -> None:
    """Of what a driver shows; the kernel log never says that something is over."""
    if code != XID:
        world.recover(part, code, reported=reported)


def looked_after(world: World, part: Part, rounds: int) -> Activity:
    """Polls of the group every so often, and somebody who decides what is asked."""
    for _ in range(rounds):
        yield world.rng.choice((10, 15, 20)) * SECOND_NS
        if world.rng.random() < 0.9:
            poll_group(world, part)
        if world.proposed and world.rng.random() < 0.15:
            _decide(world)
        if world.rng.random() < 0.03:
            yield from world.poll(part, complete=False)
        if world.rng.random() < 0.03:
            _lie(world)


def _lie(world: World) -> None:
    """The result of an action that there is not, or not any more, and a decision about it."""
    action_id = f"{a_chip(world).identity}/reset#{world.rng.choice((1, 2, 999))}"
    if action_id not in world.proposed:
        state = world.rng.choice(tuple(ActionState))
        world.say(ActionResult(action_id=action_id, state=state, reason="nobody asked"))
        world.say(Operator(who="uid:1000", what="approve", device=action_id, reason="nobody asked"))


def is_taken_out(world: World, part: Part) -> Activity:
    """For a minute another part is in the slot."""
    mine, part.active = part.identity, {}
    for identity in (f"{mine}'", mine):
        part.identity = identity
        comes_back(world, part)
        yield MINUTE_NS


def comes_back(world: World, part: Part) -> None:
    part.present = True
    part.reported_holders = None
    if world.hears(part):
        world.say(world.seen(part))
        world.report_holders(part)


def poll_group(world: World, part: Part) -> None:
    """In one turn, as they come from one driver."""
    parts = [one for one in group_of(world, part) if world.hears(one)]
    world.say(
        *(
            ActiveSet(
                source=one.source,
                device=one.name,
                codes=tuple(ActiveCode(code=code) for code in one.active),
                begun_ns=world.rule_ns(world.true_ns),
                complete=True,
            )
            for one in parts
        )
    )
    for one in parts:
        world.report_holders(one)


def _decide(world: World) -> None:
    what = world.rng.choices(("approve", "refuse"), (8, 1))[0]
    for action_id in world.proposed:
        world.say(Operator(who="uid:1000", what=what, device=action_id, reason="seen to"))
