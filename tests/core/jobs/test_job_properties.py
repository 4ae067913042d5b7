"""What must hold of supervised jobs in every history: any crash, any compaction, no reset under a job."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import JobSettings, Mode
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    CatalogChanged,
    Claimed,
    Claims,
    Event,
    EventKind,
    Input,
    Job,
    JobBegun,
    JobEnded,
    JobPolicy,
    JobStage,
    Peer,
    ResetMode,
    RunReported,
    RunReportKind,
    Started,
    Tick,
)
from nodeagent.core.reconcile import PublishedState
from tests.core.build import held, ns, order, row, signal
from tests.core.resets import histories as of_resets
from tests.core.resets.histories import (
    CHIPS,
    SHORT,
    History,
    Steps,
    assert_same_future,
    moderately,
)
from tests.core.resets.ring import ring_catalog

pytestmark = pytest.mark.slow

_TIMES = {"stop_timeout_ns": ns(15), "heal_timeout_ns": ns(40)}
MINE = "MINE"
"""A fault of the application."""


def _catalog(digest: str, mode: ResetMode, how: Mode, registered: bool = False) -> Catalog:
    base = ring_catalog(mode, **SHORT)
    jobs = JobSettings(in_place_registered=registered, **_TIMES)
    rows = {**base.rows, MINE: row(MINE, user_induced=True)}
    return replace(base, digest=digest, rows=rows, settings=replace(base.settings, mode=how, jobs=jobs))


CATALOGS = {
    each.digest: each
    for each in (
        _catalog("on", ResetMode.ON, Mode.RESCHEDULING),
        _catalog("graceful", ResetMode.ON, Mode.GRACEFUL),
        _catalog("registered", ResetMode.ON, Mode.RESCHEDULING, registered=True),
        _catalog("ask", ResetMode.ASK, Mode.GRACEFUL),
        _catalog("dry-run", ResetMode.DRY_RUN, Mode.RESCHEDULING),
        _catalog("off", ResetMode.OFF, Mode.GRACEFUL),
    )
}
JOBS = ("slurm:7.0", "slurm:7.1", "pid:9")

_jobs, _chips = st.sampled_from(JOBS), st.sampled_from(CHIPS)
_policies = st.builds(
    lambda in_place, yields, reschedules: JobPolicy(
        in_place=in_place, yields=yields, reschedules=reschedules
    ),
    st.sampled_from((True, True, False)),
    st.booleans(),
    st.booleans(),
)
_runs = st.integers(1, 4)
begins = st.builds(
    lambda job, pid, run, is_running, devices, policy: JobBegun(
        job=job,
        kind="training",
        peer=Peer(pid=pid, start_time=1, uid=1000),
        run=run,
        is_running=is_running,
        devices=tuple(devices),
        policy=policy,
    ),
    _jobs,
    st.sampled_from((1, 1, 2)),
    _runs,
    st.sampled_from((False, False, True)),
    st.lists(st.sampled_from((*CHIPS, "npu9")), max_size=2),
    _policies,
)
said = st.builds(
    lambda job, number, run, what: RunReported(job=job, number=number, run=run, what=what, status=1),
    _jobs,
    st.integers(1, 12),
    _runs,
    st.sampled_from((*3 * (RunReportKind.STOPPED, RunReportKind.STARTED), *RunReportKind)),
)
inputs: st.SearchStrategy[Input] = st.one_of(
    begins,
    begins,
    said,
    said,
    said,
    st.builds(lambda job: JobEnded(job=job, why="left", status=0), _jobs),
    st.builds(
        lambda chip, job, claimed: Claims(device=chip, job=job, kind="training", claimed=claimed),
        _chips,
        st.sampled_from(("slurm:7", "slurm:7.0", "other")),
        st.booleans(),
    ),
    st.builds(held, _chips, st.sampled_from((None, None, "slurm:7.0", ""))),
    st.builds(lambda chip: signal(MINE, "once", chip), _chips),
    st.builds(
        lambda what, job: order(what, "node", only=job), st.sampled_from(("stop_job", "rerun_job")), _jobs
    ),
    st.builds(lambda digest: CatalogChanged(digest=digest), st.sampled_from(tuple(CATALOGS))),
    of_resets.inputs,
    of_resets.inputs,
)
_pauses = st.sampled_from((0, 1, ns(1), ns(1), ns(2), ns(3), ns(5), ns(11), ns(45)))
_stray = st.tuples(_pauses, inputs).map(lambda step: [step])


def _recovery(chip: str, job: str, policy: JobPolicy, breaks: Steps) -> Steps:
    """A job begins, its chip breaks, it stops and is run again, with something else in the middle."""
    peer = Peer(pid=3, start_time=1, uid=1000)
    begun = JobBegun(job=job, kind="training", peer=peer, devices=(chip,), policy=policy)
    words = (RunReportKind.STARTED, RunReportKind.STOPPED, RunReportKind.STARTED)
    started, stopped, again = (
        RunReported(job=job, number=20 + at, run=1 + at // 2, what=what) for at, what in enumerate(words)
    )
    heals = of_resets.round_of(
        chip, helps=True, breaks=[*breaks, (ns(1), stopped), (ns(1), held(chip, None))]
    )
    return [(0, begun), (0, started), *heals, (ns(1), again)]


_recoveries = st.builds(_recovery, _chips, _jobs, _policies, st.lists(st.tuples(_pauses, inputs), max_size=2))


def histories(most: int = 16) -> st.SearchStrategy[History]:
    return st.lists(_stray | _recoveries, min_size=most // 2, max_size=most).map(of_resets.timed)


def begin() -> tuple[Engine, History]:
    return of_resets.begin(CATALOGS)


def played(engine: Engine, history: Iterable[tuple[int, Input]]) -> list[Event]:
    return of_resets.play(engine, history)[0]


@moderately
@given(histories(), histories(4))
def test_a_crash_at_any_point_changes_nothing_that_jobs_are_told_later(
    past: History, future: History
) -> None:
    engine, log = begin()
    for at_ns, one in past:
        log += [(at_ns, record) for record in engine.step(at_ns, one).records]
    rebuilt = Engine(CATALOGS)
    for at_ns, one in log:
        rebuilt.replay(at_ns, one)
    rebuilt.resume(engine.now_ns)
    assert_same_future(engine, rebuilt, future)


@moderately
@given(histories(), histories(4))
def test_a_compacted_history_of_jobs_has_the_same_future(past: History, future: History) -> None:
    engine, _ = begin()
    played(engine, past)
    compacted = Engine(CATALOGS)
    for carried in engine.carry():
        compacted.replay(engine.now_ns, carried)
    compacted.resume(engine.now_ns)
    assert compacted.carry() == engine.carry()
    assert_same_future(engine, compacted, future)


@moderately
@given(histories())
def test_what_jobs_say_that_is_not_stored_changed_nothing(history: History) -> None:
    (of_all, _), (of_stored, _) = begin(), begin()
    for at_ns, one in history:
        outcome = of_all.step(at_ns, one)
        of_stored.step(at_ns, outcome.records[0] if outcome.records else Tick())
    assert of_all.carry() == of_stored.carry()


@moderately
@given(histories())
def test_to_look_at_everything_again_changes_nothing(history: History) -> None:
    """A start after a crash does so."""
    engine, _ = begin()
    for at_ns, one in history:
        engine.step(at_ns, one)
        before = jobs_in(engine)
        engine.reconcile(PublishedState())
        after = engine.step(at_ns, Tick())
        assert [event for event in after.events if event.job is not None] == []
        assert jobs_in(engine) == before


def jobs_in(engine: Engine) -> list[Job]:
    """As they are kept: a view would work out all else as well."""
    return engine._state.all(Job)


def names_in(engine: Engine) -> set[str]:
    claimed = {job for each in engine._state.all(Claimed) for job, _ in each.jobs}
    return claimed | {job.name for job in jobs_in(engine)}


@moderately
@given(histories())
def test_no_reset_begins_on_a_chip_of_a_job_that_has_not_stopped(history: History) -> None:
    engine, _ = begin()
    for at_ns, one in history:
        before = names_in(engine)
        outcome = engine.step(at_ns, one)
        for action in outcome.actions:
            for job in engine.view().jobs:
                uses = not set(job.devices).isdisjoint(action.devices)
                if uses and job.stage is not None and job.policy.in_place and job.name in before:
                    assert job.stage is JobStage.HOLDING


@moderately
@given(histories())
def test_what_is_said_once_is_told_once(history: History) -> None:
    engine, _ = begin()
    times: Counter[tuple[str, str, str]] = Counter()
    life: Counter[str] = Counter()
    for event in played(engine, history):
        if event.kind is EventKind.JOB_BEGUN and event.job is not None:
            life[event.job.name] += 1
        if event.job is not None and "number" in event.evidence:
            times[event.job.name, str(life[event.job.name]), event.evidence["number"]] += 1
    assert max(times.values(), default=1) == 1


@moderately
@given(histories())
def test_after_a_reboot_no_job_has_a_supervisor(history: History) -> None:
    engine, _ = begin()
    played(engine, history)
    boot = engine.view().boot_id
    engine.step(engine.now_ns, Started(boot_id=f"{boot}+", version="1"))
    stages = [job.stage for job in engine.view().jobs]
    assert set(stages) <= {JobStage.ENDED}


@moderately
@given(histories(), st.sampled_from(tuple(CATALOGS)))
def test_a_reload_asks_nobody_to_stop(history: History, digest: str) -> None:
    engine, _ = begin()
    played(engine, history)
    running = {job.name for job in engine.view().jobs if job.stage is JobStage.RUNNING}
    engine.step(engine.now_ns, CatalogChanged(digest=digest))
    asked = {job.name for job in engine.view().jobs if job.stage is JobStage.ASKED}
    assert running.isdisjoint(asked)
