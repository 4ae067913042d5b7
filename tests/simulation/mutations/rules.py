"""Small, named defects of the rules, each put into the core by replacing one function: each must be caught.

A mutation is what a slip of the pen would make of a rule. New rules bring their own; those of resets are in
``tests.simulation.acting.mutations``.
"""

from dataclasses import replace

from nodeagent.core import engine, reload
from nodeagent.core.engine import Engine
from nodeagent.core.faults import ending, signals
from nodeagent.core.judge import judge, recovery_action
from nodeagent.core.machines import holds, sources
from nodeagent.core.model import (
    ActiveSet,
    CatalogChanged,
    Hold,
    Ordinal,
    ProcessesListed,
    Signal,
    SourceAbsent,
    Started,
    Window,
)
from nodeagent.core.rules import correlation, frequency, kinds
from nodeagent.core.state import cells, deadlines, limits, occupancy
from nodeagent.core.state.state import EngineState
from nodeagent.daemon.clock import Clock
from tests.simulation.mutations.defects import (
    FOURTH,
    any_end,
    any_owner,
    any_reason,
    as_of_a_chip,
    begun_now,
    carrying_no,
    count_first_only,
    counting,
    each_presence_counts,
    earlier,
    empty_all,
    end_with_fault,
    fire_and_keep,
    ignores_recovery,
    isolates,
    judging,
    never,
    never_unknown,
    once_ends,
    once_interrupts_recovery,
    once_is_occur,
    once_prolongs,
    once_stays,
    reaching_of_conditions,
    reboot_clears_unread,
    recover_at_once,
    recover_everywhere,
    reload_drops,
    reload_raises,
    replaced_but,
    resume_forgetting,
    resume_unfired,
    settles_silently,
    short_presence_counts,
    start_fires,
    starting_without_sources,
    taken_complete,
    takes_unstored,
    unknown_hides,
    without_reset,
)
from tests.simulation.mutations.mutation import Mutation

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
        ((frequency, "_keep_alive", never), (kinds, "present", never)),
    ),
    Mutation("a promotion is released a nanosecond early", (earlier("release_ns", 1),)),
    Mutation("a promotion ends with its fault", ((kinds, "recovered", end_with_fault),)),
    Mutation("only the first occurrence of a fault counts", ((kinds, "occurred", count_first_only),)),
    Mutation("what repeats while promoted is counted anew", ((frequency, "_promotion", never),)),
    Mutation("correlation is not waited for", ((correlation, "has_siblings", lambda *_: False),)),
    Mutation("correlation asks for no job", ((occupancy, "same_job", lambda *_: True),)),
    Mutation("correlation finds nothing", ((correlation, "_shown_elsewhere", never),)),
    Mutation("a duration ends at its time-out, not past it", (earlier("timeout_ns", 1),)),
    Mutation("a duration never times out", ((deadlines, "timeout_ns", never),)),
    Mutation("a presence shorter than its time-out counts", ((ending, "recover", short_presence_counts),)),
    Mutation(
        "further presences within its recovery time count",
        ((ending, "_time_out", each_presence_counts),),
    ),
    Mutation("a once prolongs a presence", handlers={Signal: once_prolongs}),
    Mutation("a once ends a presence", handlers={Signal: once_ends}),
    Mutation("a once prolongs the recovery time", handlers={Signal: once_interrupts_recovery}),
    Mutation("the recovery time-out is ignored", ((ending, "recover", recover_at_once),)),
    Mutation("a tolerance ends at its time, not past it", (earlier("phase_ns", 1),)),
    Mutation("a tolerance never ends", ((deadlines, "phase_ns", never),)),
    Mutation("a once does not close", ((deadlines, "clearing_ns", once_stays),)),
    Mutation("a once closes a nanosecond early", (earlier("clearing_ns", 1),)),
    Mutation("a once is taken for a presence", handlers={Signal: once_is_occur}),
    Mutation("a recovery is not heard", handlers={Signal: ignores_recovery}),
    Mutation("a recovery ends the code on every device", ((ending, "recover", recover_everywhere),)),
    Mutation("an incomplete active set closes", handlers={ActiveSet: taken_complete}),
    Mutation("an active set closes what came since it began", handlers={ActiveSet: begun_now}),
    Mutation("an active set opens nothing", ((sources, "_shown", lambda *_: False),)),
    Mutation("an active set closes nothing", ((sources, "_close_absent", lambda *_: False),)),
    Mutation("a reboot clears before anything is read", handlers={Started: reboot_clears_unread}),
    Mutation("a reboot clears nothing", ((ending, "close_after_reboot", lambda *_: False),)),
    Mutation("timers run while nothing is observed", ((EngineState, "awaits", lambda *_: False),)),
    Mutation("a start fires what is held", ((Engine, "_advance", start_fires),)),
    Mutation("the last verdict counts, not the strictest", (judging(lambda every: every[-1:]),)),
    Mutation("PreSeparateNPU hides RestartNPU", (judging(without_reset),)),
    Mutation("UNKNOWN hides what is stricter", ((judge, "judge", unknown_hides),)),
    Mutation("an unobserved device is ALLOW", ((judge, "judge", never_unknown),)),
    Mutation("a source that cannot run is not missed", ((sources, "_blinds", lambda *_: False),)),
    Mutation("what was never looked for is not missed", handlers={Started: starting_without_sources}),
    Mutation("what is not here is missed", handlers={SourceAbsent: lambda *_: False}),
    Mutation(
        "what repeats on a link reaches nobody behind it",
        ((judge, "_reaching", reaching_of_conditions),),
    ),
    Mutation("a fault of the application isolates", ((recovery_action, "of_job_stance", isolates),)),
    Mutation(
        "a program's fault of the node restarts all jobs", ((recovery_action, "of_job_stance", as_of_a_chip),)
    ),
    Mutation("the third fault of the application counts as the first", ((signals, "_USER_INDUCED", FOURTH),)),
    Mutation("a change of verdict is not emitted", ((engine, "settle", settles_silently),)),
    Mutation("a release lifts another's hold", ((holds, "lift", any_owner),)),
    Mutation("an isolation for another reason replaces the first", ((holds, "_same", any_reason),)),
    Mutation("a shorter isolation shortens a longer one", ((holds, "_is_later", any_end),)),
    Mutation("a hold outlives its time", ((deadlines, "of_hold", never),)),
    Mutation("a new part keeps the old one's holds", (replaced_but(Hold),)),
    Mutation("a part that comes back finds its counts", (replaced_but(Window),)),
    Mutation("a reload raises", handlers={CatalogChanged: reload_raises}),
    Mutation("a reload drops promotions", handlers={CatalogChanged: reload_drops}),
    Mutation("a reload leaves levels as they were", ((reload, "_take_row", never),)),
    Mutation("a restart loses the counts", ((Engine, "resume", resume_forgetting),)),
    Mutation("a restart fires what was fired", ((Engine, "resume", resume_unfired),)),
    Mutation("a compaction loses the counts", (carrying_no(Window),)),
    Mutation("a compaction loses the holds", (carrying_no(Hold),)),
    Mutation("a compaction loses the numbers given", (carrying_no(Ordinal),)),
    Mutation("holders are not stored", handlers={ProcessesListed: takes_unstored}),
    Mutation(
        "an id comes twice",
        ((limits, "next_id", lambda _, __, device_id, name, *___: f"{device_id}/{name}#1"),),
    ),
    Mutation("windows go by the wall clock", ((Clock, "rule_ns", lambda clock: clock.wall_ns()),)),
    Mutation("outlived timers are kept", ((cells.Timers, "_shed", never),)),
)
