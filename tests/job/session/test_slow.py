"""A slow rank is reported and printed; the run goes on, whatever the policy allows."""

import pytest

from nodeagent.job.model import HangMode, Policy, RunEvent, RunReport
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import Print, Slowed, SlowStage
from tests.job.session.play import kinds, only, running

ALLOWS_ALL = Policy(in_place=True, placements=3, in_place_retries=3, hang=HangMode.RESTART)
FOUND = Slowed(
    run=1, what=SlowStage.FOUND, who="rank 2", why="rank 2 holds up its peers", evidence={"score": "0.50"}
)
ENDED = Slowed(run=1, what=SlowStage.ENDED, who="rank 2", why="rank 2 keeps up")


@pytest.mark.parametrize("policy", [Policy(), ALLOWS_ALL])
@pytest.mark.parametrize(("given", "what"), [(FOUND, RunEvent.SLOW), (ENDED, RunEvent.KEEPS_UP)])
def test_it_is_reported_and_printed_and_nothing_else(policy: Policy, given: Slowed, what: RunEvent) -> None:
    play = running(policy)
    effects = play.give(given)
    assert kinds(effects) == ["Print", "RunReport"]
    report = only(effects, RunReport)
    assert (report.what, report.why, report.evidence["who"]) == (what, given.why, "rank 2")
    assert only(effects, Print).text == f"run 1: {given.why}"
    assert play.phase is SessionPhase.RUNNING


def test_what_is_found_of_an_earlier_run_counts_for_nothing() -> None:
    play = running(Policy())
    assert play.give(Slowed(run=0, what=SlowStage.FOUND, who="rank 2", why="")) == []
