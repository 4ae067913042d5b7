"""What mutations put in the place of the core's own functions: each is one slip of the pen."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from nodeagent.core import engine
from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.levels import of_job_stance
from nodeagent.core.engine import Engine
from nodeagent.core.faults import ending, signals
from nodeagent.core.judge import events
from nodeagent.core.judge import judge as gathered
from nodeagent.core.judge.judge import judge
from nodeagent.core.machines import devices, holds, sources
from nodeagent.core.model import (
    ActiveSet,
    Affects,
    Assertion,
    Carried,
    CatalogChanged,
    Condition,
    Device,
    EventKind,
    Handling,
    Hold,
    HoldKind,
    Input,
    Kind,
    Level,
    Operator,
    Presence,
    ProcessesListed,
    Promotion,
    Reason,
    Signal,
    Started,
    Verdict,
    Window,
)
from nodeagent.core.rules import frequency, windows
from nodeagent.core.rules.frequency import recovered, release
from nodeagent.core.state import deadlines, registry
from nodeagent.core.state.derived import Contribution, Judgement
from nodeagent.core.state.state import EngineState
from tests.simulation.mutations.mutation import Replacement

# ---------------------------------------------------------------------- frequency

_count, _fire, _recovered, _release = (
    windows.count,
    frequency._fire,
    recovered,
    release,
)
_occurred = frequency.occurred


def counting(change: Callable[[FrequencyRule], FrequencyRule]) -> Replacement:
    def count(window: Window, rule: FrequencyRule, *rest: Any) -> tuple[Window, bool]:
        return _count(window, change(rule), *rest)

    return windows, "count", count


def fire_and_keep(
    state: EngineState, device: Any, condition: Condition, rule: FrequencyRule, *rest: Any
) -> None:
    _fire(state, device, condition, rule, *rest)
    key = state.lookup.facts(condition.code).key
    state.put(Window(device_id=device.id, code=key, rule=rule.id, occurrences_ns=rest[-1]))


def empty_all(state: EngineState, code_key: str, rule: FrequencyRule, *_: Any) -> None:
    for window in state.all(Window):
        if (window.code, window.rule) == (code_key, rule.id):
            state.put(replace(window, occurrences_ns=()))


def end_with_fault(state: EngineState, condition: Condition, at_ns: int) -> None:
    _recovered(state, condition, at_ns)
    for promotion in state.promotions(condition.device_id, state.lookup.facts(condition.code).key):
        _release(state, promotion, "its fault is over")


def count_first_only(state: EngineState, condition: Condition, at_ns: int, occurrences: int = 1) -> None:
    if condition.presence.count == occurrences:
        _occurred(state, condition, at_ns, occurrences)


# ---------------------------------------------------------------------- deadlines

_clearing_ns = deadlines.clearing_ns


def earlier(name: str, by_ns: int) -> Replacement:
    original = getattr(deadlines, name)

    def moved(*arguments: Any) -> int | None:
        at_ns = original(*arguments)
        return None if at_ns is None else at_ns - by_ns

    return deadlines, name, moved


def once_stays(lookup: Any, condition: Condition) -> int | None:
    is_once = (
        condition.presence.present_ns is None
        and condition.presence.recovered_ns is None
        and not condition.origin.injected
    )
    return None if is_once else _clearing_ns(lookup, condition)


def never(*_: Any) -> None:
    return None


# ---------------------------------------------------------------------- presence, polls, closing

_recover, _after_reboot = ending.recover, ending.close_after_reboot
_polled, _signalled = engine._HANDLERS[ActiveSet], engine._HANDLERS[Signal]
_started = engine._HANDLERS[Started]


def recover_at_once(state: EngineState, condition: Condition) -> bool:
    return _recover(state, replace(condition, grade=replace(condition.grade, timed_out=False)))


def recover_everywhere(state: EngineState, condition: Condition) -> bool:
    alike = [one for one in state.all(Condition) if one.code == condition.code and not one.origin.injected]
    return max(_recover(state, one) for one in alike)


def reboot_clears_unread(state: EngineState, given: Started) -> bool:
    changed = _started(state, given)
    for source in ("ascend", "nvidia", "kmsg"):
        _after_reboot(state, source, None, frozenset())
    return changed


def taken_complete(state: EngineState, given: ActiveSet) -> bool:
    return _polled(state, replace(given, complete=True))


def begun_now(state: EngineState, given: ActiveSet) -> bool:
    return _polled(state, replace(given, begun_ns=state.now_ns + 1))


def once_is_occur(state: EngineState, given: Signal) -> bool:
    occurs = given.assertion is Assertion.ONCE
    return _signalled(state, replace(given, assertion=Assertion.OCCUR) if occurs else given)


def ignores_recovery(state: EngineState, given: Signal) -> bool:
    return given.assertion is not Assertion.RECOVER and _signalled(state, given)


# ---------------------------------------------------------------------- passages of a duration rule

_timed_out = ending._time_out


def short_presence_counts(state: EngineState, condition: Condition) -> bool:
    is_short = condition.presence.present_ns is not None and not condition.grade.timed_out
    if is_short and state.lookup.facts(condition.code).duration is not None:
        _occurred(state, condition, state.moment_ns)
    return _recover(state, condition)


def each_presence_counts(state: EngineState, condition: Condition) -> None:
    _timed_out(state, condition)
    if condition.grade.timed_out:
        _occurred(state, condition, state.moment_ns)


def once_leaves(change: Callable[[Presence, int], Presence]) -> Callable[[EngineState, Signal], bool]:
    """A ``once`` changes the presence of a fault that has a duration rule."""

    def signalled(state: EngineState, given: Signal) -> bool:
        changed = _signalled(state, given)
        device, facts = registry.find(state, given.device), state.lookup.facts(given.code)
        is_once = given.assertion is Assertion.ONCE and given.trusted and not given.injected
        if device is None or facts.duration is None or not is_once:
            return changed
        condition = state.condition(device.id, facts.key)
        if condition is not None and condition.presence.present_ns is not None:
            presence = change(condition.presence, state.moment_ns)
            state.put(replace(condition, presence=presence))
        return changed

    return signalled


once_prolongs = once_leaves(
    lambda presence, now_ns: presence if presence.judged else replace(presence, present_ns=now_ns)
)
once_ends = once_leaves(
    lambda presence, now_ns: replace(presence, present_ns=None, judged=False, last_ns=now_ns)
)


def once_interrupts_recovery(state: EngineState, given: Signal) -> bool:
    changed = _signalled(state, given)
    device = registry.find(state, given.device)
    condition = state.condition(device.id, state.lookup.facts(given.code).key) if device else None
    if (
        given.assertion is Assertion.ONCE
        and condition is not None
        and condition.presence.recovered_ns is not None
    ):
        presence = replace(condition.presence, recovered_ns=state.moment_ns)
        state.put(replace(condition, presence=presence))
    return changed


# ---------------------------------------------------------------------- verdict


def judging(change: Callable[[list[Contribution]], list[Contribution]]) -> Replacement:
    def changed(
        contributions: Iterable[Contribution], unobserved: tuple[Reason, ...], unknown: bool
    ) -> Judgement:
        return judge(change(list(contributions)), unobserved, unknown)

    return gathered, "judge", changed


def without_reset(contributions: list[Contribution]) -> list[Contribution]:
    if not any(one.level is Level.PRE_SEPARATE_NPU for one in contributions):
        return contributions
    return [one for one in contributions if one.level is not Level.RESTART_NPU]


def unknown_hides(given: Iterable[Contribution], unobserved: tuple[Reason, ...], unknown: bool) -> Judgement:
    found = judge(given, unobserved, unknown)
    return replace(found, verdict=Verdict.UNKNOWN) if unobserved and unknown else found


def never_unknown(given: Iterable[Contribution], unobserved: tuple[Reason, ...], _: bool) -> Judgement:
    return judge(given, unobserved, False)


_REACHING = gathered._reaching


def reaching_of_conditions(state: EngineState) -> Iterator[tuple[str, Affects, Contribution]]:
    """What repeats speaks for its own device alone."""
    return (each for each in _REACHING(state) if each[2].reason.kind == "condition")


def isolates(_kind: Kind, *, rescheduling: bool) -> tuple[Verdict, Handling]:
    return Verdict.ISOLATE, Handling.RESCHEDULE


def as_of_a_chip(_kind: Kind, *, rescheduling: bool) -> tuple[Verdict, Handling]:
    return of_job_stance(Kind.CHIP, rescheduling=rescheduling)


FOURTH = replace(signals._USER_INDUCED, times=4)


def settles_silently(state: EngineState) -> None:
    state.dirty.clear()


# ---------------------------------------------------------------------- identity, orders, tables

_replace_part, _changed = devices._replace_part, engine._HANDLERS[CatalogChanged]
_lift = holds.lift


def replaced_but(*kept: type) -> Replacement:
    def replaced(state: EngineState, old: Any) -> None:
        cells: list[Any] = [cell for cell in state.about(old.id) if isinstance(cell, kept)]
        _replace_part(state, old)
        for cell in cells:
            state.put(cell)

    return devices, "_replace_part", replaced


def any_owner(state: EngineState, device: Device, kind: HoldKind, given: Operator) -> list[str]:
    return _lift(state, device, kind, replace(given, force=True))


def any_reason(state: EngineState, device: Device, kind: HoldKind, given: Operator) -> Hold | None:
    holds = (hold for hold in state.on(Hold, device.id) if hold.kind is kind and hold.owner == given.owner)
    return next(holds, None)


def any_end(until_ns: int | None, than_ns: int | None) -> bool:
    return until_ns != than_ns


def reload_raises(state: EngineState, given: CatalogChanged) -> bool:
    changed = _changed(state, given)
    for condition in state.all(Condition)[:1]:
        device = state.device(condition.device_id)
        events.emit(state, EventKind.RAISED, device, about=condition, why="the tables changed")
    return changed


def reload_drops(state: EngineState, given: CatalogChanged) -> bool:
    changed = _changed(state, given)
    for promotion in state.all(Promotion):
        _release(state, promotion, "the tables changed")
    return changed


# ---------------------------------------------------------------------- replay, compaction, clock

_carry, _resume = Engine.carry, Engine.resume


def carrying_no(of: type) -> Replacement:
    def carry(self: Engine) -> tuple[Carried, ...]:
        return tuple(one for one in _carry(self) if not isinstance(one.cell, of))

    return Engine, "carry", carry


def resume_forgetting(self: Engine, now_ns: int) -> None:
    _resume(self, now_ns)
    for window in self._state.all(Window):
        self._state.drop(window)


def resume_unfired(self: Engine, now_ns: int) -> None:
    events.show_as_emitted(self._state)
    self._state.muted = False


def start_fires(self: Engine, now_ns: int, given: Input) -> bool:
    self._state.now_ns = max(self._state.now_ns, now_ns)
    self._fire()
    changed = self._take(given)
    self._fire()
    return changed


def takes_unstored(state: EngineState, given: ProcessesListed) -> bool:
    _holders(state, given)
    return False


_holders = engine._HANDLERS[ProcessesListed]


def starting_without_sources(state: EngineState, given: Started) -> bool:
    return sources.started(state, replace(given, sources=()))
