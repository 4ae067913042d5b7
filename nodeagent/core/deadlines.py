"""When each live cell wants to be looked at again: pure functions of the cell and the lookup.

They say when, never what then. A deadline is start + time-out + 1 ns, because "strictly longer" is
the vendor's wording. Because deadlines follow from cells, putting cells back restores every timer.
"""

from nodeagent.core.catalog import SECOND_NS, ClearOn
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import Condition, Hold, Promotion, Source
from nodeagent.core.verdict import phases

INJECTED_NS = 600 * SECOND_NS
"""An injected condition ends by itself after ten minutes."""

_WITHOUT_ROW = ClearOn(recover=True, reset=True, reboot=True)


def clear_on(lookup: Lookup, code: str) -> ClearOn:
    """What closes conditions of the code; a code without any row closes as the driver says."""
    row = lookup.row(code)
    return row.clear_on if row is not None else _WITHOUT_ROW


def clearing_ns(lookup: Lookup, condition: Condition) -> int | None:
    """When the condition closes if nothing more is heard, None if time does not close it."""
    if condition.injected:
        return condition.opened_ns + INJECTED_NS
    if condition.recovered_ns is not None:
        rule = lookup.duration_rule(condition.code)
        return condition.recovered_ns + (rule.recover_timeout_ns + 1 if rule else 0)
    if condition.present_ns is not None:
        return None
    closes_on = clear_on(lookup, condition.code)
    ends = []
    if closes_on.recover:
        ends.append(condition.last_ns + lookup.settings.once_hold_ns + 1)
    if closes_on.quiet_ns is not None:
        ends.append(condition.last_ns + closes_on.quiet_ns + 1)
    return min(ends, default=None)


def timeout_ns(lookup: Lookup, condition: Condition) -> int | None:
    """When this presence reaches its duration rule's time-out, None if it has or there is no rule."""
    if condition.injected or condition.judged or condition.present_ns is None:
        return None
    if condition.recovered_ns is not None:
        return None
    rule = lookup.duration_rule(condition.code)
    return condition.present_ns + rule.fault_timeout_ns + 1 if rule else None


def phase_ns(lookup: Lookup, condition: Condition) -> int | None:
    """When the level's present phase ends, None in its last. Being no presence, a ``once`` begins it anew."""
    if condition.user_induced or condition.injected:
        return None
    steps = phases(condition.level, lookup.settings)
    if condition.phase >= len(steps) - 1:
        return None
    length_ns = steps[condition.phase][0]
    since_ns = condition.level_since_ns if condition.present_ns is not None else condition.last_ns
    return None if length_ns is None else since_ns + length_ns + 1


def of_condition(lookup: Lookup, condition: Condition) -> int | None:
    due = (
        clearing_ns(lookup, condition),
        timeout_ns(lookup, condition),
        phase_ns(lookup, condition),
    )
    return min((at_ns for at_ns in due if at_ns is not None), default=None)


def of_promotion(lookup: Lookup, promotion: Promotion) -> int | None:
    """When it takes effect (after correlation), or is released after its quiet time."""
    rule = lookup.frequency_by_id(promotion.rule)
    if rule is None:
        return None
    if not promotion.effective:
        return promotion.fired_ns + rule.correlation_ns + 1
    if promotion.quiet_since_ns is None or rule.release_ns is None:
        return None
    return promotion.quiet_since_ns + rule.release_ns + 1


def of_source(lookup: Lookup, source: Source) -> int | None:
    """After a start: when ALLOW turns UNKNOWN, then when held timers run on though nothing was read."""
    if not source.awaited or source.lost_ns is not None:
        return None
    settings = lookup.settings
    ends_ns = settings.start_deadline_ns
    if not source.stale:
        ends_ns = min(settings.stale_after_ns, ends_ns)
    return source.awaited_since_ns + ends_ns + 1


def of_hold(hold: Hold) -> int | None:
    return hold.until_ns
