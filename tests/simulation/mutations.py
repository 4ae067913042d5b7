"""Small, named defects, each put into the core by replacing one function: every one must be caught.

A mutation is what a slip of the pen would make of a rule. New rules, and the policy when it comes, bring
their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

from nodeagent.core import (
    clearing,
    correlation,
    deadlines,
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
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    ActiveSet,
    CatalogChanged,
    Hold,
    Holders,
    Ordinal,
    Signal,
    Started,
    Window,
)
from nodeagent.core.state import State
from nodeagent.daemon.clock import Clock
from tests.simulation.defects import (
    FOURTH,
    Replacement,
    any_hold,
    begun_now,
    carrying_no,
    count_first_only,
    counting,
    earlier,
    empty_all,
    end_with_fault,
    fire_and_keep,
    ignores_recovery,
    isolates,
    judging,
    keep_first_quiet,
    never,
    never_unknown,
    once_is_occur,
    once_stays,
    reboot_clears_unread,
    recover_at_once,
    recover_everywhere,
    reload_drops,
    reload_raises,
    replaced_but,
    resume_forgetting,
    resume_unfired,
    settles_silently,
    start_fires,
    taken_complete,
    takes_unstored,
    unknown_hides,
    without_reset,
)
from tests.simulation.run import simulate
from tests.simulation.seeds import quiet


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


MUTATIONS: tuple[Mutation, ...] = (
    Mutation("the window's limit is one more", (counting(lambda rule: replace(rule, times=rule.times + 1)),)),
    Mutation(
        "the window's limit is one less",
        (counting(lambda rule: replace(rule, times=max(1, rule.times - 1))),),
    ),
    Mutation(
        "an occurrence exactly a window old is left out",
        (counting(lambda rule: replace(rule, time_window_ns=rule.time_window_ns - 1)),),
    ),
    Mutation("the queue is not cleared after it fired", ((frequency, "_fire", fire_and_keep),)),
    Mutation("a suppressed correlation removes every occurrence", ((correlation, "_leave", empty_all),)),
    Mutation("a suppressed correlation removes none", ((correlation, "_leave", never),)),
    Mutation(
        "the release time is measured from the first recovery",
        ((frequency, "_keep_alive", keep_first_quiet), (frequency, "present", never)),
    ),
    Mutation("a promotion is released a nanosecond early", (earlier("release_ns", 1),)),
    Mutation("a promotion ends with its fault", ((frequency, "recovered", end_with_fault),)),
    Mutation("only the first occurrence of a fault counts", ((frequency, "occurred", count_first_only),)),
    Mutation("what repeats while promoted is counted anew", ((frequency, "_standing", never),)),
    Mutation("correlation is not waited for", ((correlation, "has_siblings", lambda *_: False),)),
    Mutation("correlation asks for no job", ((correlation, "same_job", lambda *_: True),)),
    Mutation("correlation finds nothing", ((correlation, "_shown_elsewhere", never),)),
    Mutation("a duration ends at its time-out, not past it", (earlier("timeout_ns", 1),)),
    Mutation("a duration never times out", ((deadlines, "timeout_ns", never),)),
    Mutation("the recovery time-out is ignored", ((clearing, "recover", recover_at_once),)),
    Mutation("a tolerance ends at its time, not past it", (earlier("phase_ns", 1),)),
    Mutation("a tolerance never ends", ((deadlines, "phase_ns", never),)),
    Mutation("a once does not close", ((deadlines, "clearing_ns", once_stays),)),
    Mutation("a once closes a nanosecond early", (earlier("clearing_ns", 1),)),
    Mutation("a once is taken for a presence", handlers={Signal: once_is_occur}),
    Mutation("a recovery is not heard", handlers={Signal: ignores_recovery}),
    Mutation("a recovery ends the code on every device", ((clearing, "recover", recover_everywhere),)),
    Mutation("an incomplete active set closes", handlers={ActiveSet: taken_complete}),
    Mutation("an active set closes what came since it began", handlers={ActiveSet: begun_now}),
    Mutation("an active set opens nothing", ((polls, "_shown", lambda *_: False),)),
    Mutation("an active set closes nothing", ((polls, "_close_absent", lambda *_: False),)),
    Mutation("a reboot clears before anything is read", handlers={Started: reboot_clears_unread}),
    Mutation("a reboot clears nothing", ((clearing, "close_after_reboot", lambda *_: False),)),
    Mutation("timers run while nothing is observed", ((State, "awaits", lambda *_: False),)),
    Mutation("a start fires what is held", ((Engine, "_advance", start_fires),)),
    Mutation("the last verdict counts, not the strictest", (judging(lambda every: every[-1:]),)),
    Mutation("PreSeparateNPU hides RestartNPU", (judging(without_reset),)),
    Mutation("UNKNOWN hides what is stricter", ((telling, "judge", unknown_hides),)),
    Mutation("an unobserved device is ALLOW", ((telling, "judge", never_unknown),)),
    Mutation("a fault of the application isolates", ((telling, "user_induced_stance", isolates),)),
    Mutation("the third fault of the application counts as the first", ((signals, "_USER_INDUCED", FOURTH),)),
    Mutation("a change of verdict is not told", ((engine, "settle", settles_silently),)),
    Mutation("a release lifts another's hold", ((holds, "_hold_of", any_hold),)),
    Mutation("a hold outlives its time", ((deadlines, "of_hold", never),)),
    Mutation("a new part keeps the old one's holds", (replaced_but(Hold),)),
    Mutation("a part that comes back finds its counts", (replaced_but(Window),)),
    Mutation("a reload raises", handlers={CatalogChanged: reload_raises}),
    Mutation("a reload drops promotions", handlers={CatalogChanged: reload_drops}),
    Mutation("a reload leaves levels as they were", ((reload, "_reword", never),)),
    Mutation("a restart loses the counts", ((Engine, "resume", resume_forgetting),)),
    Mutation("a restart fires what was fired", ((Engine, "resume", resume_unfired),)),
    Mutation("a compaction loses the counts", (carrying_no(Window),)),
    Mutation("a compaction loses the holds", (carrying_no(Hold),)),
    Mutation("a compaction loses the numbers given", (carrying_no(Ordinal),)),
    Mutation("holders are not stored", handlers={Holders: takes_unstored}),
    Mutation("an id comes twice", ((limits, "next_ordinal", lambda *_: 1),)),
    Mutation("windows go by the wall clock", ((Clock, "rule_ns", lambda clock: clock.wall_ns()),)),
    Mutation("outlived timers are kept", ((timers.Timers, "_shed", never),)),
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


def catch_all(seeds: Sequence[int], hours: float) -> list[tuple[int, str] | None]:
    """What catches each, in their order."""
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=quiet) as pool:
        return list(pool.map(partial(_catch, seeds, hours), range(len(MUTATIONS))))


def _catch(seeds: Sequence[int], hours: float, number: int) -> tuple[int, str] | None:
    return catching_seed(MUTATIONS[number], seeds, hours)
