"""Every row of the table of verdicts: what becomes of a job, and what it costs."""

from dataclasses import replace

import pytest

from nodeagent.job.model import Counts, FailureKind, KnownFailure, Policy, RunReason, RunRequest, Wish
from nodeagent.job.session.decision import ROWS, RunDecision, RunEnding, decide, own_status
from nodeagent.job.session.state import EndCause
from nodeagent.job.session.values import RunFailure, RunNotReady

FAILED = RunEnding(cause=EndCause.EXITED, failure=RunFailure(status=1))
OF_USER = replace(
    FAILED, known=KnownFailure(kind=FailureKind.USER, signature="ValueError: x", line="ValueError: x")
)
UNKNOWN = replace(FAILED, known=KnownFailure(signature="RuntimeError: y", line="RuntimeError: y"))
BLAMED = replace(FAILED, blame=RunRequest(wish=Wish.STOP, run=1))
BUSY = Counts(schedule=4, placements=1, placements_in_row=1, retries=1, hangs=1, best=50, signature="old")

RETRIES = Policy(in_place_retries=5)
UNCONDITIONAL = Policy(placements=8, unconditional=True)


def _row(verdict: RunDecision) -> tuple[str, int | None]:
    return verdict.row, verdict.status


# ---------------------------------------------------------------------- who ends it


@pytest.mark.parametrize(("number", "status"), [(15, 143), (2, 130)])
def test_the_scheduler_ends_it(number: int, status: int) -> None:
    ending = replace(OF_USER, cause=EndCause.SIGNALLED, signal=number)
    verdict = decide(ending, RETRIES, BUSY)
    assert (*_row(verdict), verdict.counts) == ("the scheduler ends it", status, BUSY)


def test_a_command_that_is_done() -> None:
    verdict = decide(RunEnding(cause=EndCause.EXITED, failure=RunFailure(status=0)), RETRIES, BUSY)
    assert (*_row(verdict), verdict.counts) == ("done", 0, BUSY)


def test_asked_to_stop_it_runs_again_whatever_its_status_was() -> None:
    for failure in (RunFailure(status=0), RunFailure(signal=15), None):
        verdict = decide(RunEnding(cause=EndCause.ASKED, failure=failure), Policy(in_place=True), BUSY)
        assert (*_row(verdict), verdict.next_why, verdict.counts) == (
            "asked to stop",
            None,
            RunReason.HEALED,
            BUSY,
        )


def test_asked_by_an_operator_it_runs_again_by_order() -> None:
    verdict = decide(RunEnding(cause=EndCause.ASKED, by_operator=True), Policy(in_place=True), BUSY)
    assert verdict.next_why is RunReason.ORDERED


@pytest.mark.parametrize(("isolated", "status"), [(True, 86), (False, 75)])
def test_sent_away_it_costs_a_placement(isolated: bool, status: int) -> None:
    """A fault that the user has caused isolates nothing: 75."""
    verdict = decide(RunEnding(cause=EndCause.SENT_AWAY, isolated=isolated), Policy(placements=8), BUSY)
    assert (*_row(verdict), verdict.counts) == ("sent away", status, replace(BUSY, placements=2))


def test_a_job_that_never_asked_to_be_placed_anew_leaves_all_the_same() -> None:
    verdict = decide(RunEnding(cause=EndCause.SENT_AWAY, isolated=True), Policy(in_place=True), BUSY)
    assert verdict.status == 86


@pytest.mark.parametrize("cause", [EndCause.SENT_AWAY, EndCause.NOT_HEALED, EndCause.NOT_READY])
def test_a_job_that_has_used_all_its_placements_is_given_up(cause: EndCause) -> None:
    counts = replace(BUSY, placements=3)
    verdict = decide(RunEnding(cause=cause, isolated=True), Policy(placements=3), counts)
    assert (verdict.status, verdict.counts) == (87, counts)


def test_a_gate_that_stays_shut() -> None:
    verdict = decide(RunEnding(cause=EndCause.NOT_HEALED), Policy(placements=8), BUSY)
    assert (*_row(verdict), verdict.counts) == ("not healed", 86, replace(BUSY, placements=2))


@pytest.mark.parametrize(("is_of_chips", "status"), [(True, 86), (False, 75)], ids=["port", "storage"])
def test_what_a_run_needs_does_not_come(is_of_chips: bool, status: int) -> None:
    """A step replaces the node for either."""
    waited = RunNotReady(run=2, why="port hccs of npu3 is down", is_of_chips=is_of_chips)
    verdict = decide(RunEnding(cause=EndCause.NOT_READY, not_ready=waited), Policy(placements=8), BUSY)
    assert (*_row(verdict), verdict.counts) == ("not ready", status, replace(BUSY, placements=2))
    assert verdict.why == "what the run needs was not there within 600 s: port hccs of npu3 is down"
    assert verdict.fault


def test_processes_that_cannot_be_killed() -> None:
    verdict = decide(RunEnding(cause=EndCause.UNKILLABLE), Policy(placements=1), BUSY)
    assert (*_row(verdict), verdict.counts) == ("unkillable", 86, replace(BUSY, placements=2))


def test_a_run_whose_supervisor_has_ended_costs_nothing() -> None:
    verdict = decide(RunEnding(cause=EndCause.ORPHANED), Policy(), BUSY)
    assert (*_row(verdict), verdict.counts) == ("orphaned", None, BUSY)


# ---------------------------------------------------------------------- failures


@pytest.mark.parametrize("status", [1, 42, 255])
def test_a_job_that_is_only_watched_keeps_its_status(status: int) -> None:
    ending = replace(OF_USER, failure=RunFailure(status=status))
    assert _row(decide(ending, Policy(), BUSY)) == ("only watched", status)


def test_a_fault_that_can_be_healed_is_waited_for() -> None:
    verdict = decide(BLAMED, Policy(in_place=True), BUSY)
    assert (*_row(verdict), verdict.next_why, verdict.counts) == ("a fault", None, RunReason.HEALED, BUSY)


@pytest.mark.parametrize(
    ("blame", "in_place", "status"),
    [
        (RunRequest(wish=Wish.LEAVE, run=1, isolated=True), True, 86),
        (RunRequest(wish=Wish.LEAVE, run=1, isolated=False), True, 75),
        (RunRequest(wish=Wish.RUN, run=1, handling="RESCHEDULE"), True, 86),
        (RunRequest(wish=Wish.STOP, run=1), False, 75),
    ],
)
def test_a_fault_that_sends_it_away(blame: RunRequest, in_place: bool, status: int) -> None:
    """Also an error that looks like the user's: the chip goes before it."""
    ending = replace(OF_USER, blame=blame)
    verdict = decide(ending, Policy(in_place=in_place, placements=8), BUSY)
    assert (*_row(verdict), verdict.counts) == ("a fault", status, replace(BUSY, placements=2))


def test_an_error_of_the_user_is_not_tried_again_and_its_line_is_named() -> None:
    verdict = decide(OF_USER, replace(UNCONDITIONAL, in_place_retries=5), Counts())
    assert (*_row(verdict), verdict.counts) == ("an error of the user", 87, Counts())
    assert verdict.why == "an error of the job itself: ValueError: x"


def test_after_progress_it_is_tried_again() -> None:
    verdict = decide(replace(OF_USER, progressed=True), RETRIES, Counts(best=5))
    assert _row(verdict) == ("retry here", None)


def _in_a_row(policy: Policy, counts: Counts | None = None) -> list[str]:
    """The rows of one unknown failure that comes again and again, until the job is given up."""
    verdict = decide(UNKNOWN, policy, counts or Counts())
    rows = [verdict.row]
    while verdict.status is None:
        verdict = decide(UNKNOWN, policy, verdict.counts)
        rows.append(verdict.row)
    assert verdict.status == 87
    return rows


def test_the_same_unknown_failure_ends_at_the_fourth_without_progress() -> None:
    assert _in_a_row(RETRIES) == ["retry here"] * 3 + ["the same too often"]
    counts = Counts(signature="RuntimeError: y", same_errors=3, retries=3)
    why = "the same failure 4 times in a row without progress: RuntimeError: y"
    assert decide(UNKNOWN, RETRIES, counts).why == why


def test_a_stricter_row_of_errors_ends_it_at_the_second() -> None:
    assert _in_a_row(replace(RETRIES, error_row=2)) == ["retry here", "the same too often"]


def test_the_same_failure_is_counted_over_placements() -> None:
    policy = replace(UNCONDITIONAL, error_row=3)
    counts, rows = Counts(), []
    for _ in range(3):
        verdict = decide(UNKNOWN, policy, counts)
        rows.append(_row(verdict))
        counts = verdict.counts
    assert rows == [("another placement", 75)] * 2 + [("the same too often", 87)]


def test_counts_of_a_version_that_kept_the_text_alone_have_seen_it_once() -> None:
    assert len(_in_a_row(RETRIES, Counts(signature="RuntimeError: y"))) == 3


def test_another_failure_is_another_failure() -> None:
    verdict = decide(UNKNOWN, RETRIES, Counts(signature="RuntimeError: z", same_errors=3))
    assert (*_row(verdict), verdict.counts.same_errors) == ("retry here", None, 1)


def test_the_same_failure_after_progress_is_a_first_one() -> None:
    counts = Counts(signature="RuntimeError: y", same_errors=3)
    verdict = decide(replace(UNKNOWN, progressed=True), RETRIES, counts)
    assert _row(verdict) == ("retry here", None)


def test_two_failures_of_which_nothing_is_known_are_not_the_same() -> None:
    assert _row(decide(FAILED, RETRIES, Counts(signature=""))) == ("retry here", None)


@pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.HARDWARE])
def test_what_may_pass_by_itself_may_come_twice(kind: FailureKind) -> None:
    ending = replace(UNKNOWN, known=replace(UNKNOWN.known, kind=kind))
    counts = Counts(signature="RuntimeError: y", same_errors=3)
    assert _row(decide(ending, RETRIES, counts)) == ("retry here", None)


@pytest.mark.parametrize(
    ("retries", "pause_s"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (100, 60)]
)
def test_retries_are_further_and_further_apart_up_to_a_minute(retries: int, pause_s: float) -> None:
    verdict = decide(UNKNOWN, Policy(in_place_retries=101), Counts(retries=retries))
    assert (verdict.pause_s, verdict.counts.retries, verdict.next_why) == (
        pause_s,
        retries + 1,
        RunReason.FAILED,
    )


def test_a_retry_remembers_what_failed() -> None:
    counts = Counts(retries=1, signature="RuntimeError: y", same_errors=1)
    assert decide(UNKNOWN, RETRIES, Counts()).counts == counts


def test_without_a_retry_left_it_is_given_up() -> None:
    assert _row(decide(UNKNOWN, RETRIES, Counts(retries=5))) == ("failed", 87)


def test_unconditional_it_is_placed_anew_three_times_in_a_row_and_then_given_up() -> None:
    counts, verdicts = Counts(), []
    for number in range(4):
        ending = replace(UNKNOWN, known=KnownFailure(signature=f"e{number}", line=f"e{number}"))
        verdict = decide(ending, UNCONDITIONAL, counts)
        verdicts.append((*_row(verdict), verdict.counts.placements, verdict.counts.placements_in_row))
        counts = verdict.counts
    assert verdicts == [
        ("another placement", 75, 1, 1),
        ("another placement", 75, 2, 2),
        ("another placement", 75, 3, 3),
        ("failed", 87, 3, 3),
    ]


def test_the_row_of_placements_is_of_failures_without_a_fault() -> None:
    """Three nodes that broke do not make the job's first own failure its fourth."""
    counts = Counts()
    for _ in range(3):
        counts = decide(RunEnding(cause=EndCause.SENT_AWAY, isolated=True), UNCONDITIONAL, counts).counts
    assert _row(decide(UNKNOWN, UNCONDITIONAL, counts)) == ("another placement", 75)


def test_the_last_placement_is_the_last() -> None:
    assert _row(decide(UNKNOWN, UNCONDITIONAL, Counts(placements=8))) == ("failed", 87)


def test_retries_here_go_before_placements() -> None:
    policy = replace(UNCONDITIONAL, in_place_retries=1)
    assert _row(decide(UNKNOWN, policy, Counts())) == ("retry here", None)
    assert _row(decide(UNKNOWN, policy, Counts(retries=1))) == ("another placement", 75)


def test_a_job_without_a_budget_for_failures_keeps_its_status() -> None:
    ending = replace(UNKNOWN, failure=RunFailure(status=42))
    assert _row(decide(ending, Policy(in_place=True, placements=8), Counts())) == ("failed", 42)


# ---------------------------------------------------------------------- hangs


def test_three_hangs_in_a_row_are_run_again_and_the_fourth_is_given_up() -> None:
    counts, verdicts = Counts(), []
    for _ in range(4):
        verdict = decide(RunEnding(cause=EndCause.SUSPENDED), Policy(), counts)
        verdicts.append((*_row(verdict), verdict.counts.hangs))
        counts = verdict.counts
    assert verdicts == [
        ("suspended", None, 1),
        ("suspended", None, 2),
        ("suspended", None, 3),
        ("suspended once more", 87, 3),
    ]


def test_hangs_and_stops_cost_no_placement() -> None:
    policy = Policy(in_place=True, placements=1)
    for cause in (EndCause.SUSPENDED, EndCause.ASKED):
        assert decide(RunEnding(cause=cause), policy, Counts()).counts.placements == 0


# ---------------------------------------------------------------------- a step of several nodes


@pytest.mark.parametrize(
    "ending",
    [RunEnding(cause=EndCause.SUSPENDED), RunEnding(cause=EndCause.ASKED), UNKNOWN],
    ids=["hang", "stop", "failure"],
)
def test_in_a_step_all_nodes_run_again_together(ending: RunEnding) -> None:
    policy = Policy(in_step=True, in_place=True, in_place_retries=5)
    verdict = decide(ending, policy, Counts())
    assert (verdict.status, verdict.counts) == (
        85,
        decide(ending, replace(policy, in_step=False), Counts()).counts,
    )


def test_each_row_has_decided_something_above() -> None:
    """And each is reached: none stands behind a wider one."""
    counts = Counts(retries=5, placements=8, signature="RuntimeError: y", hangs=3)
    reached = {
        decide(replace(OF_USER, cause=EndCause.UNKILLABLE), Policy(), counts).row,
        decide(replace(OF_USER, cause=EndCause.SIGNALLED, signal=15), Policy(), counts).row,
        decide(replace(BLAMED, cause=EndCause.SIGNALLED), Policy(in_step=True, in_place=True), counts).row,
        decide(RunEnding(cause=EndCause.EXITED, failure=RunFailure(status=0)), Policy(), counts).row,
        *(
            decide(RunEnding(cause=cause), Policy(), counts).row
            for cause in (
                EndCause.ASKED,
                EndCause.SENT_AWAY,
                EndCause.SUB_HEALTH,
                EndCause.NOT_HEALED,
                EndCause.NOT_READY,
                EndCause.SUSPENDED,
                EndCause.ORPHANED,
            )
        ),
        decide(FAILED, Policy(), counts).row,
        decide(BLAMED, Policy(in_place=True), counts).row,
        decide(OF_USER, RETRIES, counts).row,
        decide(UNKNOWN, replace(RETRIES, error_row=2), counts).row,
        decide(FAILED, RETRIES, Counts()).row,
        decide(FAILED, UNCONDITIONAL, Counts()).row,
        decide(FAILED, RETRIES, counts).row,
        decide(RunEnding(cause=EndCause.SUSPENDED), Policy(), Counts()).row,
    }
    assert reached == {row.name for row in ROWS}


@pytest.mark.parametrize("cause", EndCause)
@pytest.mark.parametrize(
    "failure",
    [None, RunFailure(), RunFailure(status=0), RunFailure(status=1), RunFailure(signal=9)],
)
@pytest.mark.parametrize("policy", [Policy(), RETRIES, UNCONDITIONAL, Policy(in_step=True)])
def test_there_is_a_row_for_each_ending(cause: EndCause, failure: RunFailure | None, policy: Policy) -> None:
    verdict = decide(RunEnding(cause=cause, failure=failure, signal=15), policy, Counts())
    assert verdict.row in {row.name for row in ROWS}


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (RunFailure(status=3), 3),
        (RunFailure(signal=9), 137),
        (RunFailure(), 1),
        (None, 1),
        (RunFailure(status=0), 0),
    ],
)
def test_the_status_of_a_command_is_as_a_shell_gives_it(failure: RunFailure | None, status: int) -> None:
    assert own_status(failure) == status
