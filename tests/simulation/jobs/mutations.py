"""Small, named defects of what becomes of supervised jobs: each must be caught."""

from nodeagent.core import follow
from nodeagent.core.machines import job_review, job_views, jobs, supervisor_reports
from nodeagent.core.model import Job, JobBegun, RunReported
from nodeagent.core.state import occupancy
from tests.simulation.acting.defects import users_without
from tests.simulation.jobs.defects import (
    advance_in_the_same_run,
    advance_twice,
    begun_anew,
    begun_whatever_runs,
    no,
    no_words,
    none,
    out_of_the_way_as_it_leaves,
    said_again,
    said_and_not_kept,
    said_and_not_stored,
    send_away_unreported,
    stop_for_no_reset,
    wait_for_a_neighbour,
    wait_for_no_reset,
    yes,
)
from tests.simulation.mutations.defects import carrying_no
from tests.simulation.mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation("that a job has stopped is believed", ((occupancy, "left_of", no_words),)),
    Mutation("every job is out of the way", ((occupancy, "is_out_of_the_way", yes),)),
    Mutation(
        "a job that is to leave is out of the way",
        ((occupancy, "is_out_of_the_way", out_of_the_way_as_it_leaves),),
    ),
    Mutation("a job that uses a chip is ignored", (users_without("is used by the job"),)),
    Mutation("what was said is taken again", handlers={RunReported: said_again}),
    Mutation("how much was said is forgotten", handlers={RunReported: said_and_not_kept}),
    Mutation("what was said is not stored", handlers={RunReported: said_and_not_stored}),
    Mutation("a supervisor that connects again is another", handlers={JobBegun: begun_anew}),
    Mutation("a job that begins is taken as running", handlers={JobBegun: begun_whatever_runs}),
    Mutation("a reboot ends no job", ((supervisor_reports, "rebooted", none),)),
    Mutation("a compaction loses the jobs", (carrying_no(Job),)),
    Mutation("a run is skipped", ((jobs, "advance", advance_twice),)),
    Mutation("a job runs on in the run that it stopped", ((jobs, "advance", advance_in_the_same_run),)),
    Mutation("a job is sent away and not reported", ((jobs, "send_away", send_away_unreported),)),
    Mutation("no chip that a job leaves is isolated", ((job_views, "is_isolated", no),)),
    Mutation("every chip that a job leaves is isolated", ((job_views, "is_isolated", yes),)),
    Mutation("a run begins in the middle of a reset", ((job_review, "cause_of_wait", wait_for_no_reset),)),
    Mutation("a run waits for another group's reset", ((job_review, "cause_of_wait", wait_for_a_neighbour),)),
    Mutation("a job is stopped for no reset", ((job_review, "cause_of_stop", stop_for_no_reset),)),
    Mutation("a job is asked whatever blocks its reset", ((job_review, "_obstacles", no_words),)),
    Mutation("the chips of a job are judged as any", ((follow, "_judge_by_jobs", none),)),
)
