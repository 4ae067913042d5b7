"""Faults that other systems found. Each is its sender's, under an id that the sender chose: two senders that
report the same code of the same chip report two faults, and a recovery ends only its own.

A message is taken whole or not at all. A fault that is there stays until its sender says that it is over, a
person clears it, or the sender has been silent about it for too long (``deadlines.silence_ns``). What follows
from a fault is as for any other, and not decided here.

Times of senders only show which of two messages about a fault id is of the later occurrence. The time in a
recovery too is that of the beginning, as in MindCluster (docs/en/scheduling/api/clusterd/
03_public_fault_apis.md); some senders write a later one into each repetition, so that only the first counts.
"""

from nodeagent.core.catalog.classify import classify
from nodeagent.core.devices import registry
from nodeagent.core.faults import closing, signals
from nodeagent.core.model import (
    PUBLIC,
    Answer,
    Assertion,
    Condition,
    Event,
    Level,
    PublicFault,
    PublicFaults,
    Report,
    Reported,
    Signal,
    Withdrawn,
)
from nodeagent.core.orders import answers
from nodeagent.core.orders.answers import Answered
from nodeagent.core.state import eviction, limits
from nodeagent.core.state.cell_keys import changed
from nodeagent.core.state.deadlines import RENEWALS
from nodeagent.core.state.state import State

SENDER = "sender"
FAULT_ID = "fault_id"
"""Keys of the evidence."""

Taken = tuple[bool, Reported]
"""Whether anything changed, and what became of it."""


def reported(state: State, given: PublicFaults) -> Answered:
    for name in (name for fault in given.faults for name in fault.devices):
        if registry.find(state, name) is None:
            return answers.unknown_device(name)
    if full := eviction.for_reports(state, _arriving(state, given)):
        why = f"{full} has no room for more, nor is any fault there milder"
        most = f"at most {limits.MAX_REPORTED_ON_DEVICE} reported faults are open on a device"
        return answers.no_room(f"{why}; {most}: report the recovery of some first", changed=False)
    taken = [_taken(state, fault) for fault in given.faults]
    outcomes = tuple(outcome for _, outcome in taken)
    return any(did for did, _ in taken), Answer(reported=outcomes)


def began_again(state: State) -> None:
    """The time until each expires: the daemon was away, so that nobody could repeat anything; or senders have
    to repeat more often from now on.
    """
    for condition in state.all(Condition):
        if condition.report is not None:
            state.put(changed(condition, reported_ns=state.moment_ns))


def named_in(event: Event) -> Report | None:
    """Whose fault an event is about; any recovery of it is newer."""
    if event.source != PUBLIC or not {SENDER, FAULT_ID} <= event.evidence.keys():
        return None
    return Report(sender=event.evidence[SENDER], fault_id=event.evidence[FAULT_ID], began_ms=0)


def _arriving(state: State, given: PublicFaults) -> dict[str, list[Level]]:
    """The levels of what is not open yet, by the id of the device."""
    found: dict[tuple[str, str, str], Level] = {}
    for fault in given.faults:
        if fault.assertion is Assertion.RECOVER or _is_withdrawn(state, fault.report):
            continue
        facts = state.lookup.facts(fault.code)
        level = classify(state.lookup, PUBLIC, facts, None).level
        for device_id in _device_ids(state, fault):
            if state.condition(device_id, facts.key, report=fault.report) is None:
                found[device_id, facts.key, fault.report.key] = level
    arriving: dict[str, list[Level]] = {}
    for (device_id, _, _), level in found.items():
        arriving.setdefault(device_id, []).append(level)
    return arriving


def _device_ids(state: State, fault: PublicFault) -> list[str]:
    found = (registry.find(state, name) for name in fault.devices)
    return [device.id for device in found if device is not None]


def _taken(state: State, fault: PublicFault) -> Taken:
    if fault.assertion is Assertion.RECOVER:
        return _recovered(state, fault.report)
    if _is_withdrawn(state, fault.report):
        return False, Reported.OUTDATED
    is_new, did = False, False
    for device_id in _device_ids(state, fault):
        key = state.lookup.facts(fault.code).key
        condition = state.condition(device_id, key, report=fault.report)
        if condition is not None and _is_known(condition, fault):
            did = _renewed(state, condition) or did
        else:
            did = _occurred(state, fault, device_id) or did
            is_new = True
    return did, Reported.TAKEN if is_new else Reported.REPEATED


def _occurred(state: State, fault: PublicFault, device_id: str) -> bool:
    return signals.signalled(
        state,
        Signal(
            source=PUBLIC,
            device=device_id,
            code=fault.code,
            assertion=fault.assertion,
            evidence=fault.evidence,
            report=fault.report,
        ),
    )


def _is_known(condition: Condition, fault: PublicFault) -> bool:
    """Whether it was reported before: what is there cannot occur. A ``once`` shows no presence."""
    if fault.assertion is Assertion.OCCUR:
        return condition.present_ns is not None
    return condition.report is not None and condition.report.began_ms >= fault.report.began_ms


def _renewed(state: State, condition: Condition) -> bool:
    """The sender still says so. True if that is to be kept: see ``RENEWALS``."""
    if condition.report is None or condition.present_ns is None:
        return False
    expiry_ns, now_ns = state.lookup.settings.public.expiry_ns(condition.report.sender), state.moment_ns
    if not expiry_ns or now_ns - condition.reported_ns < expiry_ns // RENEWALS:
        return False
    state.put(changed(condition, last_ns=max(condition.last_ns, now_ns), reported_ns=now_ns))
    return True


def _recovered(state: State, report: Report) -> Taken:
    """It is over wherever it is open, whichever devices the recovery names: the id stands for the fault."""
    is_new = _withdraw(state, report)
    there = state.reported(report)
    over = [each for each in there if each.report is not None and each.report.began_ms <= report.began_ms]
    for condition in over:
        is_new = closing.recover(state, condition) or is_new
    if over:
        return is_new, Reported.CLOSED
    return is_new, Reported.OUTDATED if there else Reported.NOT_OPEN


def _withdraw(state: State, report: Report) -> bool:
    """What occurred up to then is over, also where a message about it comes late. True if that is new."""
    if _is_withdrawn(state, report):
        return False
    limits.remember(state, Withdrawn(report=report.key, began_ms=report.began_ms))
    return True


def _is_withdrawn(state: State, report: Report) -> bool:
    known = state.get(Withdrawn, report.key)
    return known is not None and report.began_ms <= known.began_ms
