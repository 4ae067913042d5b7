"""Chips as hardware: which are reset together, what a reset does to them, and every reset that truly was."""

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Kind, SourceBack, SourceLost
from tests.simulation.faults import MINUTE_NS
from tests.simulation.history import Attempt, HardwareReset
from tests.simulation.world import Activity, Part, World


def grouped_parts() -> list[Part]:
    """A ring of four NPUs, a pair, and two GPUs that are each by themselves."""
    groups = ("ring0",) * 4 + ("pair0",) * 2
    npus = [
        Part(f"npu{n}", f"die{n}", f"0000:0{n}:00.0", "ascend", Kind.CHIP, group=group)
        for n, group in enumerate(groups)
    ]
    gpus = [Part(f"gpu{n}", f"GPU-{n}", f"0000:3{n}:00.0", "nvidia", Kind.CHIP) for n in range(2)]
    return npus + gpus


def group_of(world: World, part: Part) -> list[Part]:
    """Those that a reset of the part resets."""
    return [one for one in world.parts if one is part or (part.group and one.group == part.group)]


def reset(world: World, attempt: Attempt, identities: tuple[str, ...]) -> HardwareReset:
    """Reset what is there of the groups that these parts are in."""
    named = [part for part in world.parts if part.identity in identities]
    parts = {id(one): one for part in named for one in group_of(world, part) if one.present}
    for part in parts.values():
        _come_up(world, part)
    return HardwareReset(
        attempt=attempt,
        identities=tuple(part.identity for part in parts.values()),
        true_ns=world.true_ns,
        rule_ns=world.rule_ns(world.true_ns),
    )


def _come_up(world: World, part: Part) -> None:
    if part.when_reset == "stays":
        return
    was_active, part.active = tuple(part.active), {}
    if part.when_reset == "returns":
        world.begin(_returns(world, part, was_active), _soon(world))
    elif part.when_reset == "silent":
        world.begin(_is_silent(world, part))


def _soon(world: World) -> int:
    return world.rng.choice((SECOND_NS, 20 * SECOND_NS, MINUTE_NS, 10 * MINUTE_NS))


def _returns(world: World, part: Part, codes: tuple[str, ...]) -> Activity:
    for code in codes:
        world.occur(part, code)
    yield 0


def _is_silent(world: World, part: Part) -> Activity:
    part.heard = False
    world.say(SourceLost(source=part.source, reason="no answer after a reset", device=part.name))
    yield world.rng.choice((MINUTE_NS, 5 * MINUTE_NS, 30 * MINUTE_NS))
    part.heard = True
    if part.source not in world.lost:
        world.say(SourceBack(source=part.source, device=part.name))
        yield from world.poll(part)
