"""Small, named defects of the policy, each in the place of one of its functions: each must be caught."""

from dataclasses import replace

from nodeagent.core.devices import identity, processes
from nodeagent.core.engine import Engine
from nodeagent.core.model import ActionResult, Charge, Claimed
from nodeagent.core.resets import attempts, blockers, charges, eligibility, lifecycle, policy, proposals
from tests.simulation.acting.defects import (
    asks_after_a_reload,
    charge_the_asker,
    cooled_at_once,
    done_at_once,
    end_holding,
    is_always_live,
    kept_despite,
    no,
    no_words,
    nothing,
    one_more,
    one_more_for_the_node,
    propose_approved,
    raise_no_failure,
    replace_uncharged,
    resume_uncharged,
    start_and_let_go,
    start_in_earnest,
    starting_despite,
    takes_a_late_result,
    takes_any_result_for_done,
    takes_anyones_result,
    users_without,
    verified_by_any_poll,
    verified_whatever_it_shows,
    wanting,
)
from tests.simulation.mutations.defects import carrying_no
from tests.simulation.mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation("a chip's limit is one more", ((charges, "exhausted", one_more),)),
    Mutation("the node's limit is one more", ((blockers, "of_start", one_more_for_the_node),)),
    Mutation("only the chip that asks is charged", ((charges, "charge", charge_the_asker),)),
    Mutation("nothing is charged", ((charges, "charge", nothing),)),
    Mutation("a restart loses the resets that count", ((Engine, "resume", resume_uncharged),)),
    Mutation("a compaction loses the resets that count", (carrying_no(Charge),)),
    Mutation("a compaction loses the claims", (carrying_no(Claimed),)),
    Mutation("a part that comes back was never reset", ((identity, "_replace_part", replace_uncharged),)),
    Mutation("a reset counts from its start", ((charges, "recharge", nothing),)),
    Mutation("the cool-down is ignored", ((blockers, "cooled_ns", cooled_at_once),)),
    Mutation("a second group is reset meanwhile", ((blockers, "_is_under_way", no),)),
    Mutation("a holder is ignored", (users_without("is held by"),)),
    Mutation("a claim is ignored", (users_without("is claimed by"),)),
    Mutation("a chip is free if nobody knows who holds it", (users_without("is not known"),)),
    Mutation("a process list is trusted", (users_without("no job hook has called"),)),
    Mutation("who held a chip before a start holds it now", ((processes, "began_again", nothing),)),
    Mutation("a member that is not observed blocks nothing", (starting_despite("is not observed"),)),
    Mutation("isolation and separation are ignored", ((blockers, "barrier", no_words),)),
    Mutation("a quiesce is ignored", (starting_despite("quiesced by"),)),
    Mutation("a store that is not durable is ignored", (starting_despite("the store"),)),
    Mutation("no poll has to confirm the fault", (starting_despite("no poll has shown"),)),
    Mutation("a fault of an earlier life is a reason", ((eligibility, "is_live", is_always_live),)),
    Mutation(
        "the application's fault asks for a reset", (wanting(lambda one: replace(one, user_induced=False)),)
    ),
    Mutation("a drill asks for a reset", (wanting(lambda one: replace(one, injected=False)),)),
    Mutation("a reload asks for a reset", ((policy, "asks", asks_after_a_reload),)),
    Mutation("a reset stays proposed though its fault is gone", (kept_despite("the fault is gone"),)),
    Mutation("a reset keeps the mode of its proposal", (kept_despite("the mode of resets"),)),
    Mutation("resets that are switched off continue", (kept_despite("switched off"),)),
    Mutation("a group that grew is reset as it was", (kept_despite("other devices"),)),
    Mutation("a dry run acts", ((attempts, "start", start_in_earnest),)),
    Mutation("an approval is not waited for", ((proposals, "propose", propose_approved),)),
    Mutation("a hold is not lifted", ((lifecycle, "end", end_holding),)),
    Mutation("a hold is lifted at the start", ((attempts, "start", start_and_let_go),)),
    Mutation("no poll has to verify", handlers={ActionResult: done_at_once}),
    Mutation("a poll begun before the result verifies", ((attempts, "verified", verified_by_any_poll),)),
    Mutation("a poll that shows the fault verifies", ((attempts, "verified", verified_whatever_it_shows),)),
    Mutation("a reset ends what the polls still show", ((eligibility, "is_shown", no),)),
    Mutation("it is tried for ever", ((attempts, "_MOST_ATTEMPTS", 99),)),
    Mutation("one that failed and is not tried again is let go", ((lifecycle, "has_failed", no),)),
    Mutation("a failed reset is not reported", ((lifecycle, "raise_own", raise_no_failure),)),
    Mutation("a limit that is reached is not reported", ((proposals, "_emit_limit", no),)),
    Mutation("the result of another action is taken", handlers={ActionResult: takes_anyones_result}),
    Mutation("the late result of an attempt is taken", handlers={ActionResult: takes_a_late_result}),
    Mutation("a failure is taken for done", handlers={ActionResult: takes_any_result_for_done}),
)
