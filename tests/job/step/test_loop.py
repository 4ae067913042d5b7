"""The loop of a step: which runs it makes, on which nodes, and with what it leaves.

Which nodes make a run: whatever is lost, left out or doubtful.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.job.model import Counts, RunReason
from nodeagent.job.session.values import Print, Signalled
from nodeagent.job.step.loop import chosen
from nodeagent.job.step.values import AskScheduler, EndRun, NodeOutcome, StepOptions, Wait, Waited
from tests.job.step.play import NODES, Play

FAULT = {"fault": True, "next_why": RunReason.HEALED, "why": "npu3: 80E18005"}


def test_all_nodes_done_is_done() -> None:
    play = Play()
    play.begin()
    play.end(*map(play.outcome, NODES), status=0)
    assert (play.left, len(play.plans)) == (0, 1)


def test_the_status_of_srun_shows_no_success() -> None:
    """A node was lost, and srun ended with 0: two are done, and the third has said nothing."""
    play = Play()
    play.begin()
    play.has = ("n1", "n3")
    play.end(play.outcome("n1"), play.outcome("n3"), status=0)
    assert play.left == 75


def test_one_that_waits_for_its_chips_has_all_run_again() -> None:
    play = Play()
    play.begin()
    play.end(play.peer("n1"), play.outcome("n2", 85, **FAULT), play.peer("n3"))
    first, second = play.plans
    assert (second.run, second.execution, second.nodes) == (2, 2, NODES)
    assert first.whys == dict.fromkeys(NODES, "first")
    assert second.whys == {"n1": "peer", "n2": "healed", "n3": "peer"}


def test_numbers_of_runs_go_on_over_placements_and_executions_begin_anew() -> None:
    play = Play()
    play.begun = replace(play.begun, first_run=4)
    play.begin()
    play.end(play.outcome("n2", 85, **FAULT))
    assert [(each.run, each.execution) for each in play.plans] == [(4, 1), (5, 2)]


@pytest.mark.parametrize("status", [75, 86])
def test_a_node_out_of_service_is_replaced_by_a_spare(status: int) -> None:
    play = Play(StepOptions(nodes=2, reruns=True))
    play.begin()
    play.end(play.outcome("n1", status, fault=True), play.peer("n2"))
    assert [each.nodes for each in play.plans] == [("n1", "n2"), ("n2", "n3")]
    assert play.plans[1].whys == {"n2": "peer", "n3": "peer"}


def test_no_more_nodes_are_replaced_than_the_policy_allows() -> None:
    play = Play(StepOptions(nodes=1, reruns=True, placements=8, replacements=1))
    play.begin()
    play.end(play.outcome("n1", 86, fault=True))
    assert ([each.nodes for each in play.plans], play.kept.replacements) == ([("n1",), ("n2",)], 1)
    play.end(play.outcome("n2", 86, fault=True))
    assert (play.left, play.kept.placements) == (75, 1)


def test_replacements_are_counted_over_placements() -> None:
    play = Play(StepOptions(nodes=2, reruns=True, replacements=1), counts=Counts(replacements=1))
    play.begin()
    play.end(play.outcome("n1", 86, fault=True))
    assert (len(play.plans), play.left) == (1, 75)


def test_without_a_replacement_left_a_job_of_fewer_nodes_goes_on() -> None:
    play = Play(StepOptions(nodes=2, at_least=1, reruns=True, replacements=0))
    play.begin()
    play.end(play.outcome("n1", 86, fault=True))
    assert ([each.nodes for each in play.plans], play.left) == ([("n1", "n2"), ("n2",)], None)


def test_a_node_that_was_left_out_never_comes_back() -> None:
    play = Play(StepOptions(nodes=2, at_least=1, reruns=True))
    play.begin()
    play.end(play.outcome("n1", 86, fault=True))
    play.end(play.outcome("n3", 86, fault=True))
    assert [each.nodes for each in play.plans] == [("n1", "n2"), ("n2", "n3"), ("n2",)]


def test_a_node_out_of_service_and_no_spare_ends_the_placement() -> None:
    play = Play(StepOptions(reruns=True, placements=8))
    play.begin()
    play.end(play.outcome("n2", 86, fault=True))
    assert (play.left, play.kept.placements) == (75, 1)


def test_the_last_placement_is_not_asked_for_twice() -> None:
    play = Play(StepOptions(reruns=True, placements=8), counts=Counts(placements=8))
    play.begin()
    play.end(play.outcome("n2", 86, fault=True))
    assert play.left == 87


@pytest.mark.parametrize(("least", "left", "runs"), [(2, None, 2), (3, 75, 1)])
def test_a_lost_node_is_gone_without_as_long_as_enough_are_left(
    least: int, left: int | None, runs: int
) -> None:
    play = Play(StepOptions(at_least=least, reruns=True))
    play.begin()
    play.has = ("n1", "n3")
    play.end()
    assert (play.left, len(play.plans)) == (left, runs)
    assert [each.nodes for each in play.plans[1:]] == [("n1", "n3")] * (runs - 1)


def test_a_lost_node_leads_to_no_rerun_where_nobody_allowed_any() -> None:
    play = Play(StepOptions())
    play.begin()
    play.has = ("n1", "n3")
    play.end(status=137)
    assert play.left == 137


@pytest.mark.parametrize("status", [78, 87])
def test_what_would_fail_again_ends_the_job(status: int) -> None:
    play = Play()
    play.begin()
    play.end(play.outcome("n1", 85, next_why=RunReason.FAILED, pause_s=1.0), play.outcome("n3", status))
    assert play.left == status


def test_a_fault_explains_what_has_failed_elsewhere() -> None:
    play = Play()
    play.begin()
    play.end(play.outcome("n1", 1), play.outcome("n2", 85, **FAULT), play.outcome("n3", 87))
    assert (play.left, len(play.plans)) == (None, 2)


def test_a_command_that_may_not_be_run_again_leaves_with_its_own_status() -> None:
    play = Play()
    play.begin()
    play.end(play.peer("n1"), play.outcome("n2", 3), play.peer("n3"))
    assert play.left == 3


def test_a_retry_waits_and_is_counted_once() -> None:
    play = Play()
    play.begin()
    retry = {"next_why": RunReason.FAILED, "counts": Counts(retries=1, signature="x")}
    orders = play.end(
        play.outcome("n1", 85, pause_s=1.0, **retry), play.outcome("n2", 85, pause_s=1.0, **retry)
    )
    assert [each for each in orders if isinstance(each, Wait)] == [Wait(seconds=1.0)]
    assert play.kept == Counts(retries=1, signature="x")
    assert play.give(Waited()) == [AskScheduler()]


def test_hangs_in_a_row_are_the_jobs_whatever_node_finds_them() -> None:
    play = Play()
    play.begin()
    for number, node in enumerate(("n1", "n2", "n3"), 1):
        counts = Counts(hangs=number)
        play.end(play.outcome(node, 85, next_why=RunReason.SUSPENDED, counts=counts))
        assert play.kept.hangs == number


def test_progress_on_one_node_is_progress_of_the_job() -> None:
    play = Play(counts=Counts(best=100, retries=2, hangs=1))
    play.begin()
    signalled = play.outcome("n1", 143, signalled=True, progressed=True, counts=Counts(best=150))
    failed = play.outcome(
        "n2", 85, next_why=RunReason.FAILED, counts=Counts(best=100, retries=3, hangs=1, signature="x")
    )
    play.end(signalled, failed)
    assert play.kept == Counts(best=150, retries=1, signature="x")


# ---------------------------------------------------------------------- nobody says why


def test_a_node_that_says_nothing_is_replaced_where_there_is_a_spare() -> None:
    play = Play(StepOptions(nodes=2, reruns=True))
    play.begin()
    play.end(play.peer("n2"), status=1)
    play.give(Waited())
    play.allow()
    assert [each.nodes for each in play.plans] == [("n1", "n2"), ("n2", "n3")]


def test_a_node_that_says_nothing_is_tried_again_where_there_is_none() -> None:
    play = Play()
    play.begin()
    play.end(status=1)
    play.give(Waited())
    play.allow()
    assert [each.nodes for each in play.plans] == [NODES, NODES]


def test_silence_is_not_tried_for_ever() -> None:
    play = Play()
    play.begin()
    for _ in range(6):
        play.end(status=1)
        play.give(Waited())
        play.allow()
    play.end(status=1)
    assert (play.left, play.kept.placements, len(play.plans)) == (75, 1, 7)


def test_silence_without_leave_to_run_again_ends_with_the_status_of_srun() -> None:
    play = Play(StepOptions())
    play.begin()
    play.end(status=1)
    assert play.left == 1


# ---------------------------------------------------------------------- the job is ended


def test_a_signal_while_a_run_goes_on_ends_it_and_it_is_not_made_again() -> None:
    play = Play()
    play.begin()
    assert play.give(Signalled(number=15)) == [EndRun()]
    play.end(play.outcome("n2", 85, **FAULT), play.peer("n1"))
    assert (play.left, len(play.plans)) == (143, 1)


def test_a_signal_before_a_run_ends_it_at_once() -> None:
    play = Play()
    play.give(play.begun)
    play.give(Signalled(number=2))
    assert (play.left, play.plans) == (130, [])


def test_a_signal_in_a_pause_ends_it_at_once() -> None:
    play = Play()
    play.begin()
    play.end(play.outcome("n1", 85, pause_s=60.0))
    play.give(Signalled(number=15))
    assert (play.left, len(play.plans)) == (143, 1)


def test_a_job_that_the_scheduler_is_ending_is_not_run_again() -> None:
    """Its TERM reaches the nodes before the batch script."""
    play = Play()
    play.begin()
    play.end(play.outcome("n2", 85, **FAULT), play.peer("n1"), play.peer("n3"), ends=True)
    assert (play.left, len(play.plans)) == (143, 1)


def test_a_step_that_somebody_has_ended_alone_is_not_run_again() -> None:
    play = Play()
    play.begin()
    play.end(*map(play.peer, NODES))
    assert play.left == 143


def test_a_command_that_ends_with_0_because_it_is_asked_to_end_is_no_success_of_all() -> None:
    play = Play(StepOptions())
    play.begin()
    play.end(play.outcome("n1", 0, signalled=True), status=0)
    assert play.left == 1


# ---------------------------------------------------------------------- the gate


def test_a_node_that_is_held_again_and_again_has_its_time_once() -> None:
    """The pauses between the runs are of it."""
    play = Play()
    play.begin()
    for _ in range(2):
        play.end(play.outcome("n2", 85, waited_s=195.0, **FAULT), play.outcome("n1", 1))
        play.give(Waited())
        play.allow()
    assert [dict(each.waited_s) for each in play.plans] == [{}, {"n2": 200.0}, {"n2": 400.0}]


def test_peers_that_cannot_wait_for_a_repair_are_not_run_again_as_fast_as_they_fail() -> None:
    play = Play()
    play.begin()
    first = play.end(play.outcome("n2", 85, **FAULT), play.peer("n1"))
    again = play.end(play.outcome("n2", 85, waited_s=0.5, **FAULT), play.outcome("n1", 1))
    assert [isinstance(each[-1], Wait) for each in (first, again)] == [False, True]


def test_a_node_that_began_has_all_its_time_again() -> None:
    play = Play()
    play.begin()
    for waited_s in (200.0, 0.0):
        play.end(play.outcome("n2", 85, waited_s=waited_s, **FAULT))
        if waited_s:
            play.give(Waited())
            play.allow()
    assert dict(play.plans[-1].waited_s) == {}


def test_each_change_of_the_nodes_is_told() -> None:
    play = Play(StepOptions(nodes=2, reruns=True))
    printed = [each.text for each in play.begin() if isinstance(each, Print)]
    orders = play.end(play.outcome("n1", 86, fault=True, why="npu3"))
    printed += [each.text for each in orders if isinstance(each, Print)]
    assert printed == [
        "run 1 on n1, n2, spare: n3",
        "run 1 has ended (a fault): n1: npu3",
        "run 2 on n2, n3",
    ]


def test_an_outcome_of_no_node_of_the_run_counts_for_nothing() -> None:
    play = Play(StepOptions(nodes=2, reruns=True))
    play.begin()
    stray = NodeOutcome(node="n3", run=1, status=87)
    play.end(play.outcome("n1"), play.outcome("n2"), stray, status=0)
    assert play.left == 0


def test_a_step_is_ended_once_however_often_the_loop_is_told() -> None:
    """A second time srun would kill it."""
    play = Play()
    play.begin()
    orders = [*play.give(Signalled(number=15)), *play.give(Signalled(number=15))]
    assert orders == [EndRun()]


NAMES = tuple(f"n{number}" for number in range(6))
SOME = st.sets(st.sampled_from(NAMES))


@given(
    most=st.integers(1, 6),
    less=st.integers(0, 5),
    has=SOME,
    before=SOME,
    left_out=SOME,
    doubtful=SOME,
)
def test_as_many_as_are_wanted_and_none_that_is_left_out(
    most: int, less: int, has: set[str], before: set[str], left_out: set[str], doubtful: set[str]
) -> None:
    least = max(1, most - less)
    in_order = [each for each in NAMES if each in has]
    usable = [each for each in in_order if each not in left_out]
    nodes = chosen(
        StepOptions(nodes=most, at_least=least),
        in_order,
        first=6,
        before=tuple(before),
        left_out=left_out,
        doubtful=doubtful,
    )
    if len(usable) < least:
        assert nodes is None
        return
    assert nodes is not None
    assert len(nodes) == min(most, len(usable))
    assert list(nodes) == [each for each in usable if each in nodes]
    spares = set(usable) - set(nodes)
    assert not (set(nodes) & doubtful and spares - doubtful), "a spare is better than a doubtful one"
    sure = {each for each in nodes if each not in doubtful}
    assert not (sure - before and (spares - doubtful) & before), "who was there before stays"


def test_without_a_wish_all_nodes_of_the_job_are_needed() -> None:
    assert chosen(StepOptions(), ("a", "b"), first=2) == ("a", "b")
    assert chosen(StepOptions(), ("a",), first=2) is None


def test_who_was_there_before_stays() -> None:
    assert chosen(StepOptions(nodes=2), ("a", "b", "c"), first=3, before=("b", "c")) == ("b", "c")
