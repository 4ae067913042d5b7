"""When each live cell wants to be looked at again: pure functions of the cell and the lookup.

They give the time, not what happens then. ``arm`` sets the timers by them. A deadline is start + time-out + 1
ns, because "strictly longer" is the vendor's wording. Because deadlines follow from cells, putting cells back
restores every timer.
"""

from typing import TypeVar

from nodeagent.core.catalog.catalog import DurationRule, FrequencyRule, OnceHold
from nodeagent.core.catalog.lookup import Facts, Lookup
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    Backing,
    Belief,
    Condition,
    Grade,
    Hold,
    Job,
    Origin,
    Presence,
    Promotion,
    RuleCell,
    Source,
)
from nodeagent.core.state.cells import Key
from nodeagent.core.state.state import EngineState

Timed = TypeVar("Timed", Condition, Promotion)

RENEWALS = 10
"""How many repetitions of a report are stored within its expiry time: not each one, to spare the store."""

_INJECTED_NS = 600 * SECOND_NS
"""An injected condition ends by itself after ten minutes."""


def clearing_ns(lookup: Lookup, condition: Condition) -> int | None:
    """When the condition closes if nothing more is reported, None if time does not close it.

    Where it recovers that is when its recovery has lasted; a ``once`` may keep it open then
    (``is_held_by_once``).
    """
    presence = condition.presence
    if condition.origin.injected:
        return presence.opened_ns + _INJECTED_NS
    facts = lookup.facts(condition.code)
    if presence.recovered_ns is not None:
        return presence.recovered_ns + (facts.duration.recover_timeout_ns + 1 if facts.duration else 0)
    if presence.present_ns is not None:
        return silence_ns(lookup, condition.origin)
    quiet_ns = _quiet_ns(lookup, condition, facts)
    if quiet_ns is None:
        return None
    since_ns = presence.heard_ns
    if presence.once_ns is not None and facts.duration is not None and facts.clear_on.recover:
        # A presence that has ended keeps nothing open where its end closes: only the once does.
        since_ns = presence.once_ns
    return since_ns + quiet_ns + 1


def silence_ns(lookup: Lookup, origin: Origin) -> int | None:
    """When a reported fault expires because its sender repeats it no more; None where it never does.

    ``reported_ns`` is behind the newest repetition by up to one part in ``RENEWALS``.
    """
    expiry_ns = 0 if origin.report is None else lookup.settings.public.expiry_ns(origin.report.sender)
    return origin.reported_ns + expiry_ns + expiry_ns // RENEWALS + 1 if expiry_ns else None


def is_held_by_once(lookup: Lookup, condition: Condition, at_ns: int) -> bool:
    """Whether, with a duration rule, the newest ``once`` keeps the condition open past its presence."""
    facts, once_ns = lookup.facts(condition.code), condition.presence.once_ns
    if facts.duration is None or condition.origin.injected or once_ns is None:
        return False
    quiet_ns = _quiet_ns(lookup, condition, facts)
    return quiet_ns is None or once_ns + quiet_ns + 1 > at_ns


def _quiet_ns(lookup: Lookup, condition: Condition, facts: Facts) -> int | None:
    """How long a fault that is not present must go unreported to close, None if silence does not close it."""
    quiet_ns = facts.clear_on.quiet_ns
    waits_for_no_job = facts.clear_on.job_end and condition.origin.users == ()
    if waits_for_no_job or _is_once_held(lookup, facts, condition.source):
        hold_ns = lookup.settings.once_hold_ns
        return hold_ns if quiet_ns is None else min(quiet_ns, hold_ns)
    return quiet_ns


def _is_once_held(lookup: Lookup, facts: Facts, source: str) -> bool:
    """Whether a ``once`` that nothing else shows is taken as recovered after ``once_hold``."""
    if not facts.clear_on.recover:
        return False
    once_hold = lookup.source(source).once_hold
    if once_hold is OnceHold.ALWAYS or facts.row is None:
        return True
    return once_hold is OnceHold.NO_QUIET_TIME and facts.clear_on.quiet_ns is None


def timeout_ns(rule: DurationRule | None, presence: Presence) -> int | None:
    """When this presence reaches its duration rule's time-out, None if it has or there is no rule."""
    if rule is None or presence.present_ns is None or presence.judged or presence.recovered_ns is not None:
        return None
    return presence.present_ns + rule.fault_timeout_ns + 1


def phase_ns(lookup: Lookup, condition: Condition) -> int | None:
    """When the level's present phase ends, None in its last, and while the fault is gone.

    A phase runs while the fault is present; a ``once`` is no presence, and starts it again.
    """
    presence, grade = condition.presence, condition.grade
    if grade.user_induced or condition.origin.injected or presence.recovered_ns is not None:
        return None
    if presence.present_ns is None:
        return _phase_end_ns(lookup, grade, presence.heard_ns)
    return _phase_end_ns(lookup, grade, max(grade.level_since_ns, presence.present_ns))


def _phase_end_ns(lookup: Lookup, graded: Grade | Promotion, since_ns: int) -> int | None:
    steps = lookup.phases[graded.level]
    length_ns = steps[graded.phase][0] if graded.phase < len(steps) - 1 else None
    return None if length_ns is None else since_ns + length_ns + 1


def in_its_phase(lookup: Lookup, cell: Timed, at_ns: int) -> Timed:
    """The cell in the phase that it has reached by these tables: none counts as reached just now."""
    while (end_ns := _end_of_phase_ns(lookup, cell)) is not None and end_ns <= at_ns:
        cell = cell.in_next_phase()
    return cell


def _end_of_phase_ns(lookup: Lookup, cell: Condition | Promotion) -> int | None:
    if isinstance(cell, Condition):
        return phase_ns(lookup, cell)
    return _phase_end_ns(lookup, cell, cell.level_since_ns) if cell.effective else None


def disregard_ns(lookup: Lookup, backing: Backing) -> int | None:
    """When a kernel line that the chip's driver contradicts no longer counts, however often it comes."""
    if backing.belief is not Belief.CONTRADICTED:
        return None
    return backing.believed_ns + lookup.settings.kernel_line_hold_ns + 1


def _of_condition(lookup: Lookup, condition: Condition) -> int | None:
    """What is injected only ends."""
    due = clearing_ns(lookup, condition)
    if condition.origin.injected:
        return due
    for at_ns in (
        timeout_ns(lookup.facts(condition.code).duration, condition.presence),
        phase_ns(lookup, condition),
        disregard_ns(lookup, condition.backing),
    ):
        if at_ns is not None and (due is None or at_ns < due):
            due = at_ns
    return due


def of_promotion(lookup: Lookup, promotion: Promotion) -> int | None:
    """When it takes effect (after correlation), is released after its quiet time, or its phase ends."""
    rule = lookup.frequency_by_id(promotion.rule)
    if rule is None:
        return None
    if not promotion.effective:
        return promotion.fired_ns + rule.correlation_ns + 1
    ends = (release_ns(rule, promotion), _phase_end_ns(lookup, promotion, promotion.level_since_ns))
    return min((at_ns for at_ns in ends if at_ns is not None), default=None)


def release_ns(rule: FrequencyRule, promotion: Promotion) -> int | None:
    """When it will have been quiet for longer than its rule asks."""
    if promotion.quiet_since_ns is None or rule.release_ns is None:
        return None
    return promotion.quiet_since_ns + rule.release_ns + 1


def of_source(lookup: Lookup, source: Source) -> int | None:
    """After a start: when ALLOW turns UNKNOWN, and when paused timers run on though nothing was read."""
    ends = (held_until_ns(lookup, source), stale_ns(lookup, source))
    return min((at_ns for at_ns in ends if at_ns is not None), default=None)


def held_until_ns(lookup: Lookup, source: Source) -> int | None:
    """After a start only: a source lost in this life of the daemon pauses them until it is back."""
    if not source.awaited or not source.unread:
        return None
    return source.awaited_since_ns + lookup.settings.start_deadline_ns + 1


def stale_ns(lookup: Lookup, source: Source) -> int | None:
    if not source.unread or source.stale:
        return None
    return source.awaited_since_ns + lookup.settings.stale_after_ns + 1


def _of_rule_cell(lookup: Lookup, cell: RuleCell) -> int | None:
    """None where its rule is gone."""
    rule = lookup.raising_by_id(cell.rule)
    return None if rule is None else cell.due_ns(rule)


def of_hold(hold: Hold) -> int | None:
    return None if hold.until_ns is None else max(hold.until_ns, hold.since_ns)


BLOCKED_NS = 5 * SECOND_NS
"""So long something may block a reset that a job has stopped for: a process may just be ending."""


def of_job(job: Job, now_ns: int) -> int | None:
    """When its stage ends by itself, or, before that, when its reset was blocked for too long."""
    ends = [job.due_ns]
    if job.blocked_ns is not None and job.blocked_ns + BLOCKED_NS > now_ns:
        ends.append(job.blocked_ns + BLOCKED_NS)
    return min((at_ns for at_ns in ends if at_ns is not None), default=None)


# ---------------------------------------------------------------------- timers


def arm(
    state: EngineState, key: Key, cell: Condition | Promotion | RuleCell | None, not_before_ns: int = 0
) -> None:
    """Set the timer of a cell, or remove it. It is paused while its source does not observe; only that of an
    injected one runs on.
    """
    at_ns = None
    if cell is not None and (not state.awaits(cell.source, cell.device_id) or _is_injected(cell)):
        at_ns = _of(state.lookup_on(cell.device_id), cell)
    state.timers.set(key, None if at_ns is None else max(at_ns, not_before_ns))


def rearm(state: EngineState, not_before_ns: int = 0) -> None:
    """After a source or the catalog changed: set every timer again from its cell."""
    for of in (Condition, Promotion, *state.rule_cells):
        for key, cell in state.cells[of].items():
            arm(state, key, cell, not_before_ns)
    for key, source in state.cells[Source].items():
        state.timers.set(key, of_source(state.lookup, source))


def _of(lookup: Lookup, cell: Condition | Promotion | RuleCell) -> int | None:
    if isinstance(cell, Condition):
        return _of_condition(lookup, cell)
    return of_promotion(lookup, cell) if isinstance(cell, Promotion) else _of_rule_cell(lookup, cell)


def _is_injected(cell: Condition | Promotion | RuleCell) -> bool:
    return isinstance(cell, Condition) and cell.origin.injected
