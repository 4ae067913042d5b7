"""What other systems say of a node: in time, late, twice, out of order, or not at all any more."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.catalog.settings import SECOND_NS, PublicSettings
from nodeagent.core.faults.reported import FAULT_ID, SENDER
from nodeagent.core.model import NODE, Assertion, Kind, Level, PublicFault, PublicFaults, Report
from tests.core.build import catalog, ns, row
from tests.simulation.faults import HOUR_NS, MINUTE_NS, a_chip, about
from tests.simulation.interruptions import (
    boots_again,
    dies,
    is_compacted,
    is_renumbered,
    is_unreadable,
    reloads,
    steps_the_clock,
)
from tests.simulation.world import Activity, World

SENDERS = ("pingmesh", "CCAE")
IDS = ("f-1", "f-2")
CALLERS = ("", "", "certificate:a", "certificate:b")
"""A sender's name that is kept for it is used in nobody's name."""
SLOW, BROKEN = "110001010", "020001001"
EXPIRY_S = (60, 600)

_BY_OTHERS = ClearOn(recover=True, operator=True)
_ROWS = (
    row(SLOW, Level.SUB_HEALTH, kind=Kind.PUBLIC, clear_on=_BY_OTHERS),
    row(BROKEN, Level.SEPARATE_NPU, kind=Kind.PUBLIC, clear_on=_BY_OTHERS),
)


def reporting_catalogs() -> Mapping[str, Catalog]:
    """By digest: they differ in when a fault expires."""
    short, long = map(ns, EXPIRY_S)
    found = (
        catalog(*_ROWS, digest="calm", public=PublicSettings(expire_after_ns=short)),
        catalog(
            *_ROWS,
            digest="patient",
            public=PublicSettings(expire_after_ns=long, expire_after_by_sender={"CCAE": short}),
        ),
    )
    return {one.digest: one for one in found}


def reports(world: World) -> Activity:
    """A sender reports a fault, repeats it about as often as it must, and at times says that it is over."""
    report, devices, code = _chosen(world)
    for _ in range(world.rng.randint(1, 6)):
        _say(world, report, Assertion.OCCUR, code, devices)
        yield about(world, world.rng.choice((1, 6, 30, 60, 66, 600, 660)) * SECOND_NS)
    if world.rng.random() < 0.6:
        _say(world, report, Assertion.RECOVER, code, devices[:1])
        yield 0


def comes_late(world: World) -> Activity:
    """A message about what is over already, and one about its recovery though it has occurred again."""
    report, devices, code = _chosen(world)
    later = replace(report, began_ms=report.began_ms + 5)
    said = [
        (report, Assertion.OCCUR),
        (report, Assertion.RECOVER),
        (report, Assertion.OCCUR),
        (later, Assertion.OCCUR),
        (report, Assertion.RECOVER),
        (later, Assertion.RECOVER),
    ]
    if world.rng.random() < 0.5:
        world.rng.shuffle(said)
    for each, assertion in said:
        _say(world, each, assertion, code, devices)
        yield world.rng.choice((0, SECOND_NS, MINUTE_NS))


def is_seen_once(world: World) -> Activity:
    """A fault that ends by itself, at times beside one that stays."""
    report, devices, code = _chosen(world)
    for assertion in world.rng.choices((Assertion.ONCE, Assertion.ONCE, Assertion.OCCUR), k=3):
        _say(world, report, assertion, code, devices)
        yield about(world, world.rng.choice((1, 30, 60, 61)) * SECOND_NS)
        report = replace(report, began_ms=report.began_ms + world.rng.choice((0, 1)))


def _chosen(world: World) -> tuple[Report, tuple[str, ...], str]:
    report = Report(
        sender=world.rng.choice(SENDERS),
        fault_id=world.rng.choice(IDS),
        began_ms=world.true_ns // 1_000_000,
        by=world.rng.choice(CALLERS),
    )
    devices = tuple(dict.fromkeys((a_chip(world).name, world.rng.choice((NODE, a_chip(world).name)))))
    return report, devices, world.rng.choice((SLOW, BROKEN))


def _say(world: World, report: Report, assertion: Assertion, code: str, devices: tuple[str, ...]) -> None:
    whose = {SENDER: report.sender, FAULT_ID: report.fault_id}
    fault = PublicFault(
        report=report,
        code=code,
        assertion=assertion,
        devices=devices,
        evidence=whose,
        ends_all=assertion is Assertion.RECOVER and world.rng.random() < 0.1,
    )
    world.say(PublicFaults(faults=(fault,)))


REPORTS: tuple[Callable[[World], Activity], ...] = (reports, reports, reports, comes_late, is_seen_once)
INTERRUPTIONS: tuple[Callable[[World], Activity], ...] = (
    is_renumbered,
    is_unreadable,
    steps_the_clock,
    boots_again,
    reloads,
    dies,
    dies,
    dies,
    is_compacted,
)
PAUSES_NS = (0, SECOND_NS, MINUTE_NS, 10 * MINUTE_NS, HOUR_NS)
