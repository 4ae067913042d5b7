"""A power brake that is pulled on one chip or on several, near each other or not, told in time or late."""

from collections.abc import Callable, Mapping, Sequence

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Kind, Level
from tests.core.build import catalog, common, related, row
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip, about
from tests.simulation.interruptions import (
    boots_again,
    dies,
    drops_off,
    hangs_one,
    is_compacted,
    is_renumbered,
    is_replaced,
    is_unreadable,
    loses_a_source,
    reloads,
    steps_the_clock,
)
from tests.simulation.world import Activity, World

BRAKE, SUPPLY = "BRAKE", "SUPPLY"
WITHIN_S = 60

_ROWS = (
    row(BRAKE, Level.SUB_HEALTH),
    row(SUPPLY, Level.PRE_SEPARATE_FAULT, kind=Kind.HOST, clear_on=ClearOn(recover=True, reboot=True)),
)
_ABSORBED = related(BRAKE, SUPPLY, within_s=24 * 3600, same="node")


def common_catalogs() -> Mapping[str, Catalog]:
    """By digest: on how many, how near to each other, and whether one fault stands for all of them."""
    found = (
        catalog(*_ROWS, common_cause=[common(SUPPLY, BRAKE)], relation=[_ABSORBED], digest="calm"),
        catalog(*_ROWS, common_cause=[common(SUPPLY, BRAKE, within_s=WITHIN_S)], digest="near"),
        catalog(*_ROWS, common_cause=[common(SUPPLY, BRAKE, devices=3)], relation=[_ABSORBED], digest="many"),
        catalog(*_ROWS, digest="without"),
    )
    return {one.digest: one for one in found}


def digests_of(seed: int) -> Sequence[str]:
    """The tables that are mostly in force are others for each seed; those without the rule never are."""
    *rules, without = common_catalogs()
    first = seed % len(rules)
    return (*rules[first:], *rules[:first], without)


def is_braked(world: World) -> Activity:
    """One chip, again and again."""
    part = a_chip(world)
    for _ in range(world.rng.randint(1, 3)):
        world.occur(part, BRAKE, reported=world.rng.random() < 0.8)
        yield about(world, world.rng.choice((1, 30, 60, 600)) * SECOND_NS)
        yield from world.poll(part)
    world.recover(part, BRAKE, reported=world.rng.random() < 0.8)
    yield SECOND_NS
    yield from world.poll(part)


def are_braked(world: World) -> Activity:
    """Several chips, one after the other; they are released in another order."""
    parts = world.rng.sample(world.chips(), world.rng.randint(2, 4))
    for part in parts:
        world.occur(part, BRAKE, reported=world.rng.random() < 0.9)
        yield about(world, world.rng.choice((0, 10, 30, 60, 60, 61, 120)) * SECOND_NS)
    for part in parts:
        yield from world.poll(part, complete=world.rng.random() < 0.8)
    yield world.rng.choice((SECOND_NS, 10 * MINUTE_NS, 2 * HOUR_NS))
    world.rng.shuffle(parts)
    for part in parts:
        world.recover(part, BRAKE, reported=world.rng.random() < 0.8)
        yield about(world, world.rng.choice((0, 1, 60)) * SECOND_NS)
        yield from world.poll(part)


def joins_late(world: World) -> Activity:
    """Two chips at once, and another long after them."""
    parts = world.rng.sample(world.chips(), 3)
    for part in parts[:2]:
        world.occur(part, BRAKE)
    yield world.rng.choice((10 * MINUTE_NS, HOUR_NS, 30 * HOUR_NS))
    world.occur(parts[2], BRAKE)
    yield MINUTE_NS
    for part in parts:
        world.recover(part, BRAKE)
        yield world.rng.choice((0, SECOND_NS))


BRAKES: tuple[Callable[[World], Activity], ...] = (is_braked, are_braked, are_braked, joins_late)
INTERRUPTIONS: tuple[Callable[[World], Activity], ...] = (
    loses_a_source,
    hangs_one,
    drops_off,
    is_replaced,
    is_renumbered,
    is_unreadable,
    steps_the_clock,
    boots_again,
    reloads,
    reloads,
    dies,
    dies,
    is_compacted,
)
PAUSES_NS = (0, SECOND_NS, MINUTE_NS, 10 * MINUTE_NS, HOUR_NS)
