"""What Prometheus is told of supervised jobs, made of the events of their lives."""

from collections.abc import Iterator
from dataclasses import replace

from nodeagent.core.model import (
    Event,
    EventKind,
    JobNote,
    JobStage,
    JobView,
    Recommendation,
    View,
)
from nodeagent.metrics.jobs import JobCounts, jobs_by_stage, slow_jobs
from tests.api.samples import event

SECOND_NS = 1_000_000_000


def of(kind: EventKind, at_s: float = 0.0, job: str = "slurm:7.0", **words: object) -> Event:
    note = JobNote(name=job, run=1, stage=None, why="", recommended=Recommendation.NONE)
    return replace(event(kind=kind), at_ns=round(at_s * SECOND_NS), job=note, code="", **words)  # type: ignore[arg-type]


def counted(*events: Event) -> dict[str, float]:
    """All samples that are not 0, as they are written."""
    counts = JobCounts()
    for each in events:
        counts.count(each)
    return dict(_written(counts))


def _written(counts: JobCounts) -> Iterator[tuple[str, float]]:
    for family in counts.families():
        for sample in family.samples:
            if sample.value and "_bucket" not in sample.name:
                yield f"{sample.name}{{{','.join(sample.labels.values())}}}", sample.value


def test_a_job_that_is_healed_and_runs_again_is_a_recovery_with_its_times() -> None:
    durations = {"stopped_after_s": "2.000", "granted_after_s": "12.500"}
    assert counted(
        replace(of(EventKind.JOB_ASKED, 100, evidence={"wanted": "stop"}), code="80E18005"),
        of(EventKind.JOB_STOPPED, 102),
        of(EventKind.JOB_RERUN, 113, why="healed", evidence=durations),
    ) == {
        "nodeagent_job_reruns_total{healed}": 1,
        "nodeagent_job_recoveries_total{fault,in_place}": 1,
        "nodeagent_job_recovery_seconds_count{stop}": 1,
        "nodeagent_job_recovery_seconds_sum{stop}": 2.0,
        "nodeagent_job_recovery_seconds_count{heal}": 1,
        "nodeagent_job_recovery_seconds_sum{heal}": 10.5,
        "nodeagent_job_recovery_seconds_count{rerun}": 1,
        "nodeagent_job_recovery_seconds_sum{rerun}": 0.5,
        "nodeagent_job_recovery_seconds_count{total}": 1,
        "nodeagent_job_recovery_seconds_sum{total}": 13.0,
    }


def test_a_job_that_is_told_to_leave_in_the_end_has_left() -> None:
    assert counted(
        replace(of(EventKind.JOB_ASKED, evidence={"wanted": "stop"}), code="80E18005"),
        replace(of(EventKind.JOB_ASKED, evidence={"wanted": "leave"}), code="80E18005"),
        of(EventKind.JOB_ENDED),
        of(EventKind.JOB_ENDED, job="another"),
    ) == {"nodeagent_job_recoveries_total{fault,left}": 1}


def test_one_that_ends_by_itself_while_it_was_asked_to_stop_has_ended() -> None:
    asked = of(EventKind.JOB_ASKED, evidence={"wanted": "stop"})
    assert counted(asked, of(EventKind.JOB_ENDED)) == {"nodeagent_job_recoveries_total{order,ended}": 1}


def test_suspicions_are_counted_by_their_end_and_one_that_was_cleared_is_no_recovery() -> None:
    assert counted(
        of(EventKind.JOB_SUSPECTED, evidence={"said": "suspected"}),
        of(EventKind.JOB_SUSPENDED),
        of(EventKind.JOB_SUSPECTED, evidence={"said": "cleared"}),
        of(EventKind.JOB_ENDED),
        of(EventKind.JOB_SUSPENDED, 10),
        of(EventKind.JOB_RERUN, 40, why="suspended"),
    ) == {
        "nodeagent_job_suspicions_total{suspended}": 2,
        "nodeagent_job_suspicions_total{cleared}": 1,
        "nodeagent_job_reruns_total{suspended}": 1,
        "nodeagent_job_recoveries_total{suspended,in_place}": 1,
        "nodeagent_job_recovery_seconds_count{total}": 1,
        "nodeagent_job_recovery_seconds_sum{total}": 30.0,
    }


def test_whatever_a_supervisor_says_no_series_is_made_of_it() -> None:
    series = counted(*(of(EventKind.JOB_RERUN, why=f"because {number}") for number in range(3)))
    assert series == {"nodeagent_job_reruns_total{other}": 3}


def test_a_time_is_in_every_bucket_that_it_is_below() -> None:
    counts = JobCounts()
    counts.count(of(EventKind.JOB_SUSPENDED))
    counts.count(of(EventKind.JOB_RERUN, 7))
    (family,) = (each for each in counts.families() if each.name == "nodeagent_job_recovery_seconds")
    buckets = {
        sample.labels["le"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["phase"] == "total"
    }
    assert (buckets["5.0"], buckets["10.0"], buckets["+Inf"]) == (0, 1, 1)


def test_jobs_are_counted_by_stage_and_those_that_have_ended_are_not_there() -> None:
    stages = (JobStage.RUNNING, JobStage.RUNNING, JobStage.HOLDING, JobStage.ENDED, None)
    jobs = [
        JobView(name=str(number), kind="training", devices=(), recommended=Recommendation.NONE, stage=stage)
        for number, stage in enumerate(stages)
    ]
    (family,) = jobs_by_stage(View(jobs=tuple(jobs)))
    assert {sample.labels["stage"]: sample.value for sample in family.samples} == {
        "holding": 1,
        "running": 2,
        "asked": 0,
        "leaving": 0,
        "claimed": 1,
    }


def test_slow_ranks_are_counted_and_so_are_those_that_keep_up_again() -> None:
    assert counted(
        of(EventKind.JOB_SLOW, evidence={"said": "slow"}),
        of(EventKind.JOB_SLOW, evidence={"said": "slow"}),
        of(EventKind.JOB_SLOW, evidence={"said": "keeps_up"}),
    ) == {"nodeagent_job_slow_total{slow}": 2, "nodeagent_job_slow_total{keeps_up}": 1}


def test_jobs_with_a_slow_rank_are_counted() -> None:
    job = JobView(name="a", kind="training", devices=(), recommended=Recommendation.NONE)
    (family,) = slow_jobs(View(jobs=(job, replace(job, name="b", slow=("rank 2", "npu3")))))
    assert [sample.value for sample in family.samples] == [1]
