"""How far a kernel line is believed where a driver reports the faults of the chip itself.

A line of the kernel isolates a chip at once: nothing is faster, and often nothing else reports it. The driver
reads the chip each second and reports its faults; where it does not confirm the line, and finds
the chip well, the line is disregarded after a while, however often it comes. It never counts towards
repetition by itself, and asks for no reset. A chip that only lines name, and that its vendor's driver does
not list, does not exist.

Disregarded lines stay so while they keep coming. After a silence of more than ten times that while the
next line is believed once more, for as long: one false line must not hide a true one for ever, and lines
that come again and again must not take the chip out each time.

    alone --read by its driver, and not shown--> contradicted --for too long--> disregarded
      any of them --the driver, or another source, reports the same--> own
      disregarded --a line after a long silence--> alone
"""

from dataclasses import replace

from nodeagent.core.catalog.codes import root
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import conditions
from nodeagent.core.judge.observed import unobserved_reason
from nodeagent.core.model import (
    CHIP_KINDS,
    KERNEL_LOG,
    NODE,
    Belief,
    Condition,
    Device,
    Kind,
    Noticed,
    Signal,
    Source,
)
from nodeagent.core.state.state import EngineState

NEAR_NS = 180 * SECOND_NS
"""Driver and kernel report one fault at most this far apart."""

_SILENCE_HOLDS = 10
"""Longer than so many times its hold, a disregarded line must be silent to be believed again."""


def belief(state: EngineState, device: Device, facts: Facts, source: str, at_ns: int) -> Belief:
    """How far a fault is believed that this source reports first."""
    chip = state.chip_of(device)
    driver_reports = chip.source and chip.traits.reports_events
    is_line = source == KERNEL_LOG and device.kind in CHIP_KINDS and device.source != source
    if not is_line or not driver_reports or _reported_by_driver(state, device, facts.code, at_ns):
        return Belief.OWN
    return Belief.ALONE


def confirm(state: EngineState, device: Device, facts: Facts, source: str) -> bool:
    """Its driver reports a code: lines of it with a detail, or with another one, are confirmed too."""
    changed = False
    for condition in state.on(Condition, device.id) if source == device.source else ():
        is_near = abs(state.moment_ns - condition.presence.occurred_ns) <= NEAR_NS
        if (
            condition.backing.belief is not Belief.OWN
            and is_near
            and root(condition.code) == root(facts.code)
        ):
            state.put(confirmed(state, condition, source))
            changed = True
    return changed


def _reported_by_driver(state: EngineState, device: Device, code: str, at_ns: int) -> bool:
    """Just now, the same code or a refined form of it."""
    reported = [
        (each.code, each.told_ns)
        for each in state.all(Noticed)
        if each.device_id == device.id and each.source == device.source
    ]
    reported += [
        (each.code, each.occurred_ns)
        for each in state.on(Condition, device.id)
        if each.source == device.source
    ]
    return any(
        root(each) == root(code) and abs(at_ns - reported_ns) <= NEAR_NS for each, reported_ns in reported
    )


def confirmed(state: EngineState, condition: Condition, source: str) -> Condition:
    """The fault as it is once the source reports it too; it may not be put yet. Any but the kernel log
    observed it directly.
    """
    if condition.backing.belief is Belief.OWN or source == KERNEL_LOG:
        return condition
    after = _believed(condition, Belief.OWN)
    return conditions.relevel(state, condition, after, f"{source} confirms it")


def contradicted(state: EngineState, device: Device, shown: frozenset[str], begun_ns: int) -> bool:
    """Its driver has read all of the chip, and shows these codes (as they are compared). True: it is news."""
    changed = False
    for condition in state.on_chip(device.id):
        if condition.backing.belief is not Belief.ALONE or _first_ns(condition) >= begun_ns:
            continue
        if state.lookup.facts(condition.code).key not in shown:
            since_ns = min(condition.occurred_ns, begun_ns)
            backing = replace(condition.backing, belief=Belief.CONTRADICTED, believed_ns=since_ns)
            state.put(replace(condition, backing=backing))
            changed = True
    return changed


def _first_ns(condition: Condition) -> int:
    """Its first occurrence since it is believed: the newest is always newer than a poll where many come."""
    return max(min(condition.presence.opened_ns, condition.occurred_ns), condition.backing.believed_ns)


def again(state: EngineState, before: Condition, after: Condition, source: str) -> Condition:
    """Another line of an open condition, which is ``after`` with it; it may not be put yet."""
    silence_ns = _SILENCE_HOLDS * state.lookup.settings.kernel_line_hold_ns
    is_new = source == KERNEL_LOG and after.presence.occurred_ns - before.presence.occurred_ns > silence_ns
    if before.backing.belief is not Belief.DISREGARDED or not is_new:
        return after
    backing = replace(after.backing, belief=Belief.ALONE, believed_ns=after.occurred_ns)
    believed = replace(after, backing=backing)
    return conditions.relevel(state, before, believed, "it comes again after a long silence")


def disregard(state: EngineState, condition: Condition) -> None:
    """Its time is over. While the chip is not read, nothing shows it to be well."""
    if unobserved_reason(state, state.device(condition.device_id)) is not None:
        state.put(_believed(condition, Belief.ALONE))
        return
    after = _believed(condition, Belief.DISREGARDED)
    conditions.relevel(state, condition, after, "its driver reads the chip and does not confirm it")


def listed(state: EngineState, device: Device) -> None:
    """A driver lists it for the first time: what only lines have reported until now stays unconfirmed."""
    for condition in state.on(Condition, device.id):
        if condition.source == KERNEL_LOG:
            facts = state.lookup.facts(condition.code)
            of_line = belief(state, device, facts, KERNEL_LOG, condition.occurred_ns)
            state.put(_believed(condition, of_line))


def _believed(condition: Condition, belief: Belief) -> Condition:
    return replace(condition, backing=replace(condition.backing, belief=belief))


def is_of_no_chip(state: EngineState, signal: Signal, facts: Facts) -> bool:
    """Whether a line names an unknown chip, though its vendor's driver lists all that there are."""
    row = facts.row
    if signal.source != KERNEL_LOG or signal.device == NODE or row is None or row.kind is not Kind.CHIP:
        return False
    driver = state.get(Source, row.vendor, "")
    return driver is not None and driver.observes
