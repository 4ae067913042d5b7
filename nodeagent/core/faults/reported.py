"""Faults that other systems found. Each is its sender's, under an id that the sender chose: two senders that
report the same code of the same chip report two faults, and a recovery ends only its own. So it is with two
callers that report under the name of one sender, unless that name is kept for them: no caller ends what
another opened.

A message is taken whole or not at all. A fault that is there stays until its sender reports its recovery, a
person clears it, or the sender has been silent about it for too long (``deadlines.silence_ns``). What follows
from a fault is as for any other, and not decided here.

Times of senders only show which of two messages about a fault id is of the later occurrence. The time in a
recovery too is that of the beginning, as in MindCluster (docs/en/scheduling/api/clusterd/
03_public_fault_apis.md); some senders write a later one into each repetition, so that only the first counts.
A recovery is remembered no longer than the fault would have stayed open: a clock that was wrong hides
nothing for good.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.lookup import classify
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.faults import conditions, ending, signals
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
from nodeagent.core.state import answers, limits, registry
from nodeagent.core.state.answers import Answered
from nodeagent.core.state.cells import changed
from nodeagent.core.state.deadlines import RENEWALS
from nodeagent.core.state.registry import chip_without_room, part_id, why_no_parts
from nodeagent.core.state.state import EngineState

SENDER = "sender"
FAULT_ID = "fault_id"
BY = "reported_by"
"""Keys of the evidence."""

MAX_AHEAD_NS: Final = 300 * SECOND_NS
"""A sender's clock may be ahead of this node's by so much. A recovery that is dated later would hide what its
sender reports until then.
"""

_RESETTING = frozenset({Level.FREE_RESTART_NPU, Level.RESTART_NPU})
"""What only a reset of the chip repairs."""

_Taken = tuple[bool, Reported]
"""Whether anything changed, and what became of it."""


def reported(state: EngineState, given: PublicFaults) -> Answered:
    for fault in given.faults:
        if (refused := _refusal(state, fault)) is not None:
            return refused
    if (refused := _without_room(state, given)) is not None:
        return refused
    taken = [_taken(state, fault) for fault in given.faults]
    outcomes = tuple(outcome for _, outcome in taken)
    return any(did for did, _ in taken), Answer(reported=outcomes)


def _refusal(state: EngineState, fault: PublicFault) -> Answered | None:
    """Why nothing may open on a device that it names. Those that a recovery names do not matter."""
    for name in () if fault.assertion is Assertion.RECOVER else fault.devices:
        device, part = registry.located(state, name)
        if device is None:
            return answers.unknown_device(name)
        if part and (why := why_no_parts(device)):
            return answers.unknown(f"device: {name!r} is not known: {why}")
        if excluded := state.chip_of(device).traits.excluded:
            return answers.not_possible(
                f"{device.name} is excluded, so no report about it is taken: {excluded}"
            )
    return None


def _without_room(state: EngineState, given: PublicFaults) -> Answered | None:
    arriving = _arriving(state, given)
    if full := chip_without_room(state, arriving):
        most = f"at most {limits.MAX_PARTS_ON_CHIP} parts of a chip are known"
        return answers.no_room(f"{full} has no room for more parts; {most}", changed=False)
    if full := conditions.room_for_reports(state, arriving):
        why = f"{full} has no room for more, nor is any fault there milder"
        most = f"at most {limits.MAX_REPORTED_ON_DEVICE} reported faults are open on a device"
        return answers.no_room(f"{why}; {most}: report the recovery of some first", changed=False)
    return None


def began_again(state: EngineState) -> None:
    """Start the time until each expires again: the daemon was away, so that no sender could repeat anything;
    or senders have to repeat more often from now on.
    """
    for condition in state.all(Condition):
        if condition.origin.report is not None:
            state.put(changed(condition, origin=replace(condition.origin, reported_ns=state.moment_ns)))


def named_in(event: Event) -> Report | None:
    """Whose fault an event is about; any recovery of it is newer."""
    if event.source != PUBLIC or not {SENDER, FAULT_ID} <= event.evidence.keys():
        return None
    evidence = event.evidence
    return Report(sender=evidence[SENDER], fault_id=evidence[FAULT_ID], began_ms=0, by=evidence.get(BY, ""))


def _arriving(state: EngineState, given: PublicFaults) -> dict[str, list[Level]]:
    """The levels of what is not open yet, by the id of the device."""
    found: dict[tuple[str, str, str], Level] = {}
    for fault in given.faults:
        report = _as_opened(state, fault)
        if fault.assertion is Assertion.RECOVER or _is_withdrawn(state, report):
            continue
        facts = state.lookup.facts(fault.code)
        level = _level(state, fault)
        for device_id in _device_ids(state, fault):
            if state.condition(device_id, facts.key, report=report) is None:
                found[device_id, facts.key, report.key] = level
    arriving: dict[str, list[Level]] = {}
    for (device_id, _, _), level in found.items():
        arriving.setdefault(device_id, []).append(level)
    return arriving


def _level(state: EngineState, fault: PublicFault) -> Level:
    return classify(state.lookup, PUBLIC, state.lookup.facts(fault.code), None).level


def _device_ids(state: EngineState, fault: PublicFault) -> list[str]:
    """Where it opens: on what was named, which may be a part of a chip that was not named before; or on
    the chip, where the fault asks for a reset, for no part of it is reset by itself.
    """
    is_of_the_chip = _level(state, fault) in _RESETTING
    found = dict.fromkeys(_opens_on(state, name, is_of_the_chip) for name in fault.devices)
    return [device_id for device_id in found if device_id]


def _opens_on(state: EngineState, name: str, is_of_the_chip: bool) -> str:
    device, part = registry.located(state, name)
    if device is None:
        return ""
    if is_of_the_chip:
        return state.chip_of(device).id
    return part_id(device, part) if part else device.id


def _as_opened(state: EngineState, fault: PublicFault) -> Report:
    """The report under which it is open: the caller's, or that of a version that kept no caller; and, where
    no time was given, one that is newer than all earlier reports of it.
    """
    report = fault.report
    open_by = {each.by for _, each in _open_under(state, report)}
    if report.by not in open_by and "" in open_by:
        report = replace(report, by="")
    if not fault.is_now:
        return report
    times_ms = [each.began_ms for _, each in _ended_by(state, fault)]
    withdrawn = state.get(Withdrawn, report.key)
    if fault.assertion is not Assertion.RECOVER:
        times_ms = [] if withdrawn is None else [withdrawn.began_ms + 1]
    return replace(report, began_ms=max((report.began_ms, *times_ms)))


def _taken(state: EngineState, fault: PublicFault) -> _Taken:
    report = _as_opened(state, fault)
    if fault.assertion is Assertion.RECOVER:
        return _recovered(state, fault, report)
    if _is_withdrawn(state, report):
        return False, Reported.OUTDATED
    is_new, did = False, False
    key = state.lookup.facts(fault.code).key
    for device_id in _device_ids(state, fault):
        condition = state.condition(device_id, key, report=report)
        if condition is not None and _is_known(condition, fault.assertion, report):
            did = _renewed(state, condition) or did
        else:
            did = _occurred(state, fault, report, device_id) or did
            is_new = True
    return did, Reported.TAKEN if is_new else Reported.REPEATED


def _occurred(state: EngineState, fault: PublicFault, report: Report, device_id: str) -> bool:
    return signals.signalled(
        state,
        Signal(
            source=PUBLIC,
            device=device_id,
            code=fault.code,
            assertion=fault.assertion,
            evidence={**fault.evidence, BY: report.by} if report.by else fault.evidence,
            report=report,
        ),
    )


def _is_known(condition: Condition, assertion: Assertion, report: Report) -> bool:
    """Whether it was reported before: what is there cannot occur. A ``once`` shows no presence."""
    if assertion is Assertion.OCCUR:
        return condition.presence.present_ns is not None
    return condition.origin.report is not None and condition.origin.report.began_ms >= report.began_ms


def _renewed(state: EngineState, condition: Condition) -> bool:
    """The sender has repeated it. True if that is to be kept: see ``RENEWALS``."""
    presence, origin, now_ns = condition.presence, condition.origin, state.moment_ns
    if origin.report is None or presence.present_ns is None:
        return False
    expiry_ns = state.lookup.settings.public.expiry_ns(origin.report.sender)
    if not expiry_ns or now_ns - origin.reported_ns < expiry_ns // RENEWALS:
        return False
    presence = changed(presence, last_ns=max(presence.last_ns, now_ns))
    state.put(changed(condition, presence=presence, origin=replace(origin, reported_ns=now_ns)))
    return True


def _recovered(state: EngineState, fault: PublicFault, report: Report) -> _Taken:
    """It is over wherever it is open, whichever devices the recovery names: the id is that of the fault."""
    there = list(_ended_by(state, fault))
    over = [(each, opened) for each, opened in there if opened.began_ms <= report.began_ms]
    callers = {opened.by for _, opened in over} | {report.by}
    is_new = False
    for by in sorted(callers):
        is_new = _withdraw(state, replace(report, by=by)) or is_new
    for condition, _ in over:
        is_new = ending.recover(state, condition) or is_new
    if over:
        return is_new, Reported.CLOSED
    return is_new, Reported.OUTDATED if there else Reported.NOT_OPEN


def _ended_by(state: EngineState, fault: PublicFault) -> Iterator[tuple[Condition, Report]]:
    """What is open under its name and is its caller's to end."""
    for condition, report in _open_under(state, fault.report):
        if fault.ends_all or report.by in ("", fault.report.by):
            yield condition, report


def _open_under(state: EngineState, report: Report) -> Iterator[tuple[Condition, Report]]:
    """What is open under the name of this report, of any caller, and the report that each is of."""
    for condition in state.reported(report):
        if condition.origin.report is not None:
            yield condition, condition.origin.report


def _withdraw(state: EngineState, report: Report) -> bool:
    """What occurred up to then is over, also where a message about it comes late. True if that is new."""
    if _is_withdrawn(state, report):
        return False
    limits.remember(state, Withdrawn(report=report.key, began_ms=report.began_ms, at_ns=state.moment_ns))
    return True


def _is_withdrawn(state: EngineState, report: Report) -> bool:
    known = state.get(Withdrawn, report.key)
    if known is None or report.began_ms > known.began_ms:
        return False
    return state.moment_ns - known.at_ns <= state.lookup.settings.public.recovery_kept_ns(report.sender)
