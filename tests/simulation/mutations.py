"""Small, named defects, each put into the core by replacing one function: every one must be caught.

A mutation is what a slip of the pen would make of a rule. New rules, and the policy when it comes, bring
their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from nodeagent.core import (
    clearing,
    correlation,
    deadlines,
    devices,
    engine,
    frequency,
    holds,
    limits,
    polls,
    reload,
    signals,
    telling,
    timers,
)
from nodeagent.core.catalog import FrequencyRule
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    ActiveSet,
    Assertion,
    Carried,
    CatalogChanged,
    Condition,
    EventKind,
    Handling,
    Hold,
    Holders,
    Input,
    Level,
    Ordinal,
    Promotion,
    Reason,
    Signal,
    Started,
    Verdict,
    Window,
)
from nodeagent.core.state import State
from nodeagent.core.verdict import Contribution, Judgement, judge
from nodeagent.daemon.clock import Clock
from tests.simulation.run import simulate

Replacement = tuple[Any, str, Any]
"""Where, what, by what."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """``handlers``: by type of input, what takes it instead."""

    name: str
    replacements: tuple[Replacement, ...] = ()
    handlers: Mapping[type, Callable[[State, Any], bool]] | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for where, what, by in self.replacements:
                stack.enter_context(patch.object(where, what, by))
            if self.handlers is not None:
                stack.enter_context(patch.dict(engine._HANDLERS, self.handlers))
            yield


# ---------------------------------------------------------------------- frequency

_count, _fire, _recovered, _release = (
    frequency.count,
    frequency._fire,
    frequency.recovered,
    frequency.release,
)
_occurred = frequency.occurred


def _counting(change: Callable[[FrequencyRule], FrequencyRule]) -> Replacement:
    def count(window: Window, rule: FrequencyRule, *rest: Any) -> tuple[Window, bool]:
        return _count(window, change(rule), *rest)

    return frequency, "count", count


def _fire_and_keep(state: State, device: Any, condition: Condition, rule: FrequencyRule, *rest: Any) -> None:
    _fire(state, device, condition, rule, *rest)
    key = state.lookup.facts(condition.code).key
    state.put(Window(device_id=device.id, code=key, rule=rule.id, occurrences_ns=rest[-1]))


def _empty_all(state: State, code_key: str, rule: FrequencyRule, *_: Any) -> None:
    for window in state.all(Window):
        if (window.code, window.rule) == (code_key, rule.id):
            state.put(replace(window, occurrences_ns=()))


def _keep_first_quiet(state: State, promotion: Promotion, condition: Condition, at_ns: int) -> None:
    state.put(replace(promotion, last_occurrence_ns=at_ns))


def _end_with_fault(state: State, condition: Condition, at_ns: int) -> None:
    _recovered(state, condition, at_ns)
    for promotion in state.promotions(condition.device_id, state.lookup.facts(condition.code).key):
        _release(state, promotion, "its fault is over")


def _count_first_only(state: State, condition: Condition, at_ns: int, occurrences: int = 1) -> None:
    if condition.count == occurrences:
        _occurred(state, condition, at_ns, occurrences)


# ---------------------------------------------------------------------- deadlines

_clearing_ns = deadlines.clearing_ns


def _earlier(name: str, by_ns: int) -> Replacement:
    original = getattr(deadlines, name)

    def moved(*arguments: Any) -> int | None:
        at_ns = original(*arguments)
        return None if at_ns is None else at_ns - by_ns

    return deadlines, name, moved


def _once_stays(lookup: Any, condition: Condition) -> int | None:
    flash = condition.present_ns is None and condition.recovered_ns is None and not condition.injected
    return None if flash else _clearing_ns(lookup, condition)


def _never(*_: Any) -> None:
    return None


# ---------------------------------------------------------------------- presence, polls, closing

_recover, _after_reboot = clearing.recover, clearing.close_after_reboot
_polled, _signalled = engine._HANDLERS[ActiveSet], engine._HANDLERS[Signal]
_started = engine._HANDLERS[Started]


def _recover_at_once(state: State, condition: Condition) -> bool:
    return _recover(state, replace(condition, timed_out=False))


def _recover_everywhere(state: State, condition: Condition) -> bool:
    alike = [one for one in state.all(Condition) if one.code == condition.code and not one.injected]
    return max(_recover(state, one) for one in alike)


def _reboot_clears_unread(state: State, given: Started) -> bool:
    changed = _started(state, given)
    for source in ("ascend", "nvidia", "kmsg"):
        _after_reboot(state, source, None, frozenset())
    return changed


def _taken_complete(state: State, given: ActiveSet) -> bool:
    return _polled(state, replace(given, complete=True))


def _begun_now(state: State, given: ActiveSet) -> bool:
    return _polled(state, replace(given, begun_ns=state.now_ns + 1))


def _once_is_occur(state: State, given: Signal) -> bool:
    occurs = given.assertion is Assertion.ONCE
    return _signalled(state, replace(given, assertion=Assertion.OCCUR) if occurs else given)


def _ignores_recovery(state: State, given: Signal) -> bool:
    return given.assertion is not Assertion.RECOVER and _signalled(state, given)


# ---------------------------------------------------------------------- verdict


def _judging(change: Callable[[list[Contribution]], list[Contribution]]) -> Replacement:
    def changed(contributions: Iterable[Contribution], unobserved: Reason | None, unknown: bool) -> Judgement:
        return judge(change(list(contributions)), unobserved, unknown)

    return telling, "judge", changed


def _without_reset(contributions: list[Contribution]) -> list[Contribution]:
    if not any(one.level is Level.PRE_SEPARATE_NPU for one in contributions):
        return contributions
    return [one for one in contributions if one.level is not Level.RESTART_NPU]


def _unknown_hides(given: Iterable[Contribution], unobserved: Reason | None, unknown: bool) -> Judgement:
    found = judge(given, unobserved, unknown)
    return replace(found, verdict=Verdict.UNKNOWN) if unobserved is not None and unknown else found


def _never_unknown(given: Iterable[Contribution], unobserved: Reason | None, _: bool) -> Judgement:
    return judge(given, unobserved, False)


def _isolates(_: bool) -> tuple[Verdict, Handling]:
    return Verdict.ISOLATE, Handling.RESCHEDULE


_FOURTH = replace(signals._USER_INDUCED, times=4)


def _settles_silently(state: State) -> None:
    state.dirty.clear()


# ---------------------------------------------------------------------- identity, orders, tables

_replace_part, _changed = devices._replace_part, engine._HANDLERS[CatalogChanged]


def _replaced_but(*kept: type) -> Replacement:
    def replaced(state: State, old: Any) -> None:
        cells: list[Any] = [cell for cell in state.about(old.id) if isinstance(cell, kept)]
        _replace_part(state, old)
        for cell in cells:
            state.put(cell)

    return devices, "_replace_part", replaced


def _any_hold(state: State, device: Any, _: str) -> Hold | None:
    return next(iter(state.on(Hold, device.id)), None)


def _reload_raises(state: State, given: CatalogChanged) -> bool:
    changed = _changed(state, given)
    for condition in state.all(Condition)[:1]:
        device = state.device(condition.device_id)
        telling.tell(state, EventKind.RAISED, device, about=condition, why="the tables changed")
    return changed


def _reload_drops(state: State, given: CatalogChanged) -> bool:
    changed = _changed(state, given)
    for promotion in state.all(Promotion):
        _release(state, promotion, "the tables changed")
    return changed


# ---------------------------------------------------------------------- replay, compaction, clock

_carry, _resume = Engine.carry, Engine.resume


def _carrying_no(of: type) -> Replacement:
    def carry(self: Engine) -> tuple[Carried, ...]:
        return tuple(one for one in _carry(self) if not isinstance(one.cell, of))

    return Engine, "carry", carry


def _resume_forgetting(self: Engine, now_ns: int) -> None:
    _resume(self, now_ns)
    for window in self._state.all(Window):
        self._state.drop(window)


def _resume_unfired(self: Engine, now_ns: int) -> None:
    telling.show_as_told(self._state)
    self._state.muted = False


def _start_fires(self: Engine, now_ns: int, given: Input) -> bool:
    self._state.now_ns = max(self._state.now_ns, now_ns)
    self._fire()
    changed = self._take(given)
    self._fire()
    return changed


def _takes_unstored(state: State, given: Holders) -> bool:
    _holders(state, given)
    return False


_holders = engine._HANDLERS[Holders]

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "the window's limit is one more", (_counting(lambda rule: replace(rule, times=rule.times + 1)),)
    ),
    Mutation(
        "the window's limit is one less",
        (_counting(lambda rule: replace(rule, times=max(1, rule.times - 1))),),
    ),
    Mutation(
        "an occurrence exactly a window old is left out",
        (_counting(lambda rule: replace(rule, time_window_ns=rule.time_window_ns - 1)),),
    ),
    Mutation("the queue is not cleared after it fired", ((frequency, "_fire", _fire_and_keep),)),
    Mutation("a suppressed correlation removes every occurrence", ((correlation, "_leave", _empty_all),)),
    Mutation("a suppressed correlation removes none", ((correlation, "_leave", _never),)),
    Mutation(
        "the release time is measured from the first recovery",
        ((frequency, "_keep_alive", _keep_first_quiet), (frequency, "present", _never)),
    ),
    Mutation("a promotion is released a nanosecond early", (_earlier("release_ns", 1),)),
    Mutation("a promotion ends with its fault", ((frequency, "recovered", _end_with_fault),)),
    Mutation("only the first occurrence of a fault counts", ((frequency, "occurred", _count_first_only),)),
    Mutation("what repeats while promoted is counted anew", ((frequency, "_standing", _never),)),
    Mutation("correlation is not waited for", ((correlation, "has_siblings", lambda *_: False),)),
    Mutation("correlation asks for no job", ((correlation, "same_job", lambda *_: True),)),
    Mutation("correlation finds nothing", ((correlation, "_shown_elsewhere", _never),)),
    Mutation("a duration ends at its time-out, not past it", (_earlier("timeout_ns", 1),)),
    Mutation("a duration never times out", ((deadlines, "timeout_ns", _never),)),
    Mutation("the recovery time-out is ignored", ((clearing, "recover", _recover_at_once),)),
    Mutation("a tolerance ends at its time, not past it", (_earlier("phase_ns", 1),)),
    Mutation("a tolerance never ends", ((deadlines, "phase_ns", _never),)),
    Mutation("a once does not close", ((deadlines, "clearing_ns", _once_stays),)),
    Mutation("a once closes a nanosecond early", (_earlier("clearing_ns", 1),)),
    Mutation("a once is taken for a presence", handlers={Signal: _once_is_occur}),
    Mutation("a recovery is not heard", handlers={Signal: _ignores_recovery}),
    Mutation("a recovery ends the code on every device", ((clearing, "recover", _recover_everywhere),)),
    Mutation("an incomplete active set closes", handlers={ActiveSet: _taken_complete}),
    Mutation("an active set closes what came since it began", handlers={ActiveSet: _begun_now}),
    Mutation("an active set opens nothing", ((polls, "_shown", lambda *_: False),)),
    Mutation("an active set closes nothing", ((polls, "_close_absent", lambda *_: False),)),
    Mutation("a reboot clears before anything is read", handlers={Started: _reboot_clears_unread}),
    Mutation("a reboot clears nothing", ((clearing, "close_after_reboot", lambda *_: False),)),
    Mutation("timers run while nothing is observed", ((State, "awaits", lambda *_: False),)),
    Mutation("a start fires what is held", ((Engine, "_advance", _start_fires),)),
    Mutation("the last verdict counts, not the strictest", (_judging(lambda every: every[-1:]),)),
    Mutation("PreSeparateNPU hides RestartNPU", (_judging(_without_reset),)),
    Mutation("UNKNOWN hides what is stricter", ((telling, "judge", _unknown_hides),)),
    Mutation("an unobserved device is ALLOW", ((telling, "judge", _never_unknown),)),
    Mutation("a fault of the application isolates", ((telling, "user_induced_stance", _isolates),)),
    Mutation(
        "the third fault of the application counts as the first", ((signals, "_USER_INDUCED", _FOURTH),)
    ),
    Mutation("a change of verdict is not told", ((engine, "settle", _settles_silently),)),
    Mutation("a release lifts another's hold", ((holds, "_hold_of", _any_hold),)),
    Mutation("a hold outlives its time", ((deadlines, "of_hold", _never),)),
    Mutation("a new part keeps the old one's holds", (_replaced_but(Hold),)),
    Mutation("a part that comes back finds its counts", (_replaced_but(Window),)),
    Mutation("a reload raises", handlers={CatalogChanged: _reload_raises}),
    Mutation("a reload drops promotions", handlers={CatalogChanged: _reload_drops}),
    Mutation("a reload leaves levels as they were", ((reload, "_reword", _never),)),
    Mutation("a restart loses the counts", ((Engine, "resume", _resume_forgetting),)),
    Mutation("a restart fires what was fired", ((Engine, "resume", _resume_unfired),)),
    Mutation("a compaction loses the counts", (_carrying_no(Window),)),
    Mutation("a compaction loses the holds", (_carrying_no(Hold),)),
    Mutation("a compaction loses the numbers given", (_carrying_no(Ordinal),)),
    Mutation("holders are not stored", handlers={Holders: _takes_unstored}),
    Mutation("an id comes twice", ((limits, "next_ordinal", lambda *_: 1),)),
    Mutation("windows go by the wall clock", ((Clock, "rule_ns", lambda clock: clock.wall_ns()),)),
    Mutation("outlived timers are kept", ((timers.Timers, "_shed", _never),)),
)


def catching_seed(mutation: Mutation, seeds: Iterable[int], hours: float) -> tuple[int, str] | None:
    """The first seed that shows the mutation and the invariant that it breaks; None if none of them does.

    Where the engine itself falls over, that counts, under the name of what it raised.
    """
    with mutation.applied():
        for seed in seeds:
            try:
                result = simulate(seed, hours)
            except (AssertionError, KeyError, ValueError) as fallen:
                return seed, type(fallen).__name__
            if result.broken:
                return seed, result.invariant
    return None
