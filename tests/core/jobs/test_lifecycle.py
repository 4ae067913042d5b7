"""The table of stages: what may follow what, and that nothing else does."""

import itertools

import pytest

from nodeagent.core.follow import FOLLOWERS
from nodeagent.core.machines.job_views import WANTED
from nodeagent.core.machines.jobs import TRANSITIONS, JobTrigger, advance, can
from nodeagent.core.model import Job, JobStage, Peer
from nodeagent.core.state.state import EngineState

_NOT_IN_IT = sorted(set(itertools.product(JobStage, JobTrigger)) - set(TRANSITIONS))


def job(stage: JobStage) -> Job:
    peer = Peer(pid=1, start_time=1, uid=0)
    return Job(name="slurm:7.0", kind="training", peer=peer, stage=stage, since_ns=0)


@pytest.mark.parametrize(("stage", "happened"), _NOT_IN_IT)
def test_what_is_not_in_the_table_changes_nothing(stage: JobStage, happened: JobTrigger) -> None:
    state = EngineState({}, FOLLOWERS)
    state.put(job(stage))
    assert advance(state, job(stage), happened) is None
    assert state.all(Job) == [job(stage)]


@pytest.mark.parametrize("stage", list(JobStage))
def test_every_job_that_is_there_can_end_and_one_that_has_ended_stays_so(stage: JobStage) -> None:
    assert can(job(stage), JobTrigger.ENDED) is (stage is not JobStage.ENDED)


def test_one_that_was_asked_is_never_told_to_go_on() -> None:
    following = {after for (stage, _), after in TRANSITIONS.items() if stage is JobStage.ASKED}
    assert following == {JobStage.HOLDING, JobStage.LEAVING, JobStage.ENDED}


def test_one_that_was_sent_away_can_only_end() -> None:
    following = {after for (stage, _), after in TRANSITIONS.items() if stage is JobStage.LEAVING}
    assert following == {JobStage.ENDED}


def test_every_stage_but_the_last_wants_something() -> None:
    assert set(WANTED) == set(JobStage) - {JobStage.ENDED}
