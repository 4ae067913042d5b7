"""What one node tells of its chips to who looks at all nodes of the job."""

import random
import tracemalloc
from dataclasses import replace
from typing import Any, Final

import pytest

from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.watch import ChipsSeen, RunWatch
from nodeagent.job.model import HangMode
from nodeagent.job.sample import Beat, ChipSample, ProcessSample, ProgramPhase, RunSample
from nodeagent.job.series import SampleSeries
from nodeagent.job.session.values import HangStage
from tests.job.hang.cases import found_in, settings_of, summary
from tests.job.hang.hangs import HANGS, NPU_HANGS, NPU_TRAINS
from tests.job.hang.parts import (
    GPU_STEADY,
    GPU_WAITS,
    GPU_WORKS,
    NPU_IDLE,
    NPU_WORKS,
    SLEEPS,
    SPINS,
    TRAINS,
    Act,
    Beating,
    Does,
    Shows,
    series,
)

WAITS = HANGS.cases["npu: all ranks wait"]


@pytest.fixture(scope="module")
def hung() -> SampleSeries:
    return WAITS.series()


def found(watch: RunWatch, made: SampleSeries) -> list[tuple[int, HangStage, bool]]:
    return [(each.run, each.what, each.acts) for row in made.rows for each in watch.sampled(row.sample)]


def test_in_mode_notify_a_hang_is_only_told(hung: SampleSeries) -> None:
    watch = RunWatch(settings_of(hung, mode=HangMode.NOTIFY))
    assert found(watch, hung) == [(1, HangStage.SUSPECTED, False), (1, HangStage.CONFIRMED, False)]


def test_in_mode_off_nothing_is_found(hung: SampleSeries) -> None:
    watch = RunWatch(settings_of(hung, mode=HangMode.OFF))
    assert watch.beaten(Beat(t_s=0, step=1)) == ()
    assert found(watch, hung) == []


def test_a_finding_bears_the_number_of_its_run(hung: SampleSeries) -> None:
    watch = RunWatch(settings_of(hung))
    watch.run_began(0, run=4)
    assert found(watch, hung)[-1] == (4, HangStage.CONFIRMED, True)


def test_a_new_run_knows_nothing_of_the_one_before(hung: SampleSeries) -> None:
    """It stood still for 25 minutes in all, but in two runs; the second is suspected for its late start."""
    watch = RunWatch(settings_of(hung))
    half = 75 * 6
    for row in hung.rows[:half]:
        watch.sampled(row.sample)
    watch.run_began(hung.rows[half].sample.t_s, run=2)
    assert found(watch, replace(hung, rows=hung.rows[half:])) == [(2, HangStage.SUSPECTED, False)]


def test_a_sample_that_is_no_newer_says_nothing(hung: SampleSeries) -> None:
    once, twice = RunWatch(settings_of(hung)), RunWatch(settings_of(hung))
    for row in hung.rows:
        expected = once.sampled(row.sample)
        assert twice.sampled(row.sample) == expected
        assert twice.sampled(row.sample) == ()


def test_an_advance_clears_what_was_told_of_beats() -> None:
    case = HANGS.cases["beats: a run that tells its phases is found in ten minutes"]
    made = case.series()
    watch = RunWatch(settings_of(made, mode=HangMode.NOTIFY))
    for row in made.rows:
        for beat in row.beats:
            watch.beaten(beat)
        watch.sampled(row.sample)
    (cleared,) = watch.beaten(Beat(t_s=made.rows[-1].sample.t_s, step=99_999))
    assert (cleared.what, cleared.acts, cleared.since_s) == (HangStage.CLEARED, False, 2400.0)


def test_with_a_short_hang_time_everything_is_as_much_faster() -> None:
    """As tests of whole jobs use it: six seconds in place of ten minutes."""
    acts = (replace(NPU_TRAINS, minutes=0.6), replace(NPU_HANGS, minutes=0.2))
    made = series("in seconds", *acts, ranks=2, minutes=0.1, period_s=0.1)
    watch = RunWatch(settings_of(made))
    confirmed = [row.sample.t_s for row in made.rows for each in watch.sampled(row.sample) if each.acts]
    assert [round(each, 1) for each in confirmed] == [42.0]


def test_a_burst_is_passed_over_once_in_ten_minutes() -> None:
    case = HANGS.cases["npu: a watchdog dumps its stacks every twelve minutes"]
    trains, hangs = case.acts
    often = replace(case, acts=(trains, replace(hangs, ranks=replace(hangs.ranks, burst=80e6, burst_s=400))))
    assert summary(found_in(case)).acts_min == 90.17
    assert summary(found_in(often)).acts_min is None


@pytest.mark.slow
def test_two_hours_of_sixty_four_ranks_and_sixteen_chips_fit_into_four_mebibytes() -> None:
    made = series("large", replace(NPU_TRAINS, minutes=140), ranks=64)
    samples = [replace(row.sample, chips=row.sample.chips[:16]) for row in made.rows]
    tracemalloc.start()
    try:
        watch = RunWatch(settings_of(made))
        for sample in samples:
            watch.sampled(sample)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 4 * 2**20


# ---------------------------------------------------------------------- whatever comes


def anything(chance: random.Random, t_s: float) -> RunSample:
    def number(most: int) -> int | None:
        return chance.choice((None, 0, chance.randint(0, most)))

    def process(pid: int) -> ProcessSample:
        return ProcessSample(
            pid=pid,
            ppid=chance.randint(0, 9),
            holds=chance.choice((None, True, False)),
            has_rank=chance.random() < 0.3,
            launcher=chance.random() < 0.2,
            state=chance.choice("RSDTtZ"),
            cpu_s=number(100),
            read_bytes=number(10**9),
            write_bytes=number(10**9),
            rchar=number(10**9),
            wchar=number(10**9),
            syscr=number(10**6),
            syscw=number(10**6),
        )

    def chip(name: str) -> ChipSample:
        return ChipSample(
            name=name,
            known=chance.random() < 0.9,
            util=number(100),
            power_w=number(500),
            rx_bytes=number(10**9),
            tx_bytes=number(10**9),
            profiling=chance.random() < 0.1,
            handling=chance.choice(("NONE", "NONE", "RESCHEDULE")),
        )

    return RunSample(
        t_s=t_s,
        processes=tuple(process(pid) for pid in range(chance.randint(0, 6))),
        chips=tuple(chip(f"npu{n}") for n in range(chance.randint(0, 3))),
    )


def works(chance: random.Random, t_s: float) -> RunSample:
    counter = int(t_s * 1e6)
    rank = ProcessSample(
        pid=7,
        ppid=1,
        has_rank=True,
        cpu_s=t_s / 2,
        rchar=counter,
        wchar=counter,
        syscr=counter,
        syscw=counter,
    )
    return RunSample(
        t_s=t_s, processes=(rank,), chips=(ChipSample(name="npu0", util=chance.randint(20, 90)),)
    )


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_measured_each_stand_still_is_told_in_order(seed: int) -> None:
    """It works, stands still, or anything is measured, for up to five minutes each; the hang time is one.

    Suspected at most once, confirmed at most twice (told, then to be acted on), then its one end.
    """
    chance = random.Random(seed)
    watch = RunWatch(HangSettings(hang_time_s=60, period_s=1, mode=HangMode.RESTART, start_time_s=60))
    now_s, open_case, ends = 0.0, list[HangStage](), set[HangStage]()
    for _ in range(40):
        mood = chance.choice(("works", "works", "stands still", "anything"))
        stands = replace(works(chance, now_s), chips=(ChipSample(name="npu0", util=0.0),))
        for _ in range(chance.randint(1, 300)):
            now_s += 9 if chance.random() < 0.01 else 1
            sample = {"works": works(chance, now_s), "stands still": replace(stands, t_s=now_s)}.get(mood)
            findings = watch.sampled(sample or anything(chance, now_s))
            if chance.random() < 0.002:
                findings += watch.beaten(Beat(t_s=now_s, step=chance.choice((None, 1, 2))))
            for each in findings:
                assert each.since_s >= 0
                if each.what in (HangStage.CLEARED, HangStage.DROPPED):
                    assert open_case != []
                    open_case = []
                    ends.add(each.what)
                else:
                    open_case.append(each.what)
                    assert open_case.count(HangStage.SUSPECTED) <= 1
                    assert open_case.count(HangStage.CONFIRMED) <= 2
                    assert HangStage.SUSPECTED not in open_case[1:]
    assert HangStage.CLEARED in ends


T_S = 600
WORKS = Act(minutes=30, ranks=TRAINS, chips=NPU_WORKS)
POLLS = Act(minutes=30, ranks=SPINS, chips=NPU_IDLE)
"""Its ranks poll, its chips idle: a node alone may not act on that."""

GPU_TRAINS = Act(minutes=30, ranks=TRAINS, chips=GPU_WORKS)
GPU_HANGS = Act(minutes=30, ranks=SPINS, chips=GPU_WAITS)


def seen(made: SampleSeries, *, beats: bool = False, **settings: Any) -> ChipsSeen:
    """At the end of the series. ``beats``: with a beat for each sample, of a step that advances."""
    watch = RunWatch(settings_of(made, **settings))
    for number, row in enumerate(made.rows):
        if beats:
            watch.beaten(Beat(t_s=row.sample.t_s, step=number))
        watch.sampled(row.sample)
    return watch.seen(made.rows[-1].sample.t_s)


def made_of(*acts: Act) -> SampleSeries:
    return series("a node", *acts, minutes=T_S / 60, ranks=2)


def test_chips_that_are_flat_are_told_whatever_the_ranks_do() -> None:
    found = seen(made_of(WORKS, POLLS))
    assert (found.flat_s >= T_S, found.idle_high_s) == (True, 0)


def test_chips_in_use_without_any_sign_of_work_are_told_as_such() -> None:
    found = seen(made_of(GPU_TRAINS, GPU_HANGS))
    assert (found.flat_s >= T_S, found.idle_high_s >= T_S, found.acts) == (True, True, True)


def test_a_steady_chip_at_full_power_is_flat_and_shows_work() -> None:
    found = seen(made_of(GPU_TRAINS, replace(GPU_HANGS, chips=GPU_STEADY)))
    assert (found.flat_s >= T_S, found.idle_high_s) == (True, 0)


def test_a_job_that_works_shows_nothing() -> None:
    assert seen(made_of(WORKS)) == ChipsSeen(0.0, 0.0, True)


def test_a_run_that_is_not_armed_shows_nothing() -> None:
    assert seen(made_of(POLLS)) == ChipsSeen(0.0, 0.0, False)


def test_a_run_whose_steps_advance_shows_nothing() -> None:
    assert seen(made_of(WORKS, POLLS), beats=True) == ChipsSeen(0.0, 0.0, False)


def test_what_cannot_be_read_is_not_flat() -> None:
    unread = replace(NPU_IDLE, known=False)
    assert seen(made_of(WORKS, replace(POLLS, chips=unread))).flat_s == 0


@pytest.mark.parametrize(
    "settings", [{"mode": HangMode.NOTIFY}, {"kind": "inference"}], ids=["notify", "inference"]
)
def test_only_a_policy_that_stops_a_run_that_hangs_acts(settings: dict[str, Any]) -> None:
    found = seen(made_of(GPU_TRAINS, GPU_HANGS), **settings)
    assert (found.idle_high_s >= T_S, found.acts) == (True, False)


# ---------------------------------------------------------------------- the start of a run after a stable one

STEPS_COME: Final = Beating(every_s=20)
LOADS: Final = Beating(every_s=7200, phase=ProgramPhase.LOAD, advances=False)
STABLE: Final = Act(minutes=30, ranks=TRAINS, chips=NPU_WORKS)
WAITS_AT_START: Final = Act(minutes=150, ranks=SLEEPS, chips=NPU_IDLE)
GPU_WAITS_AT_START: Final = Act(minutes=150, ranks=SPINS, chips=GPU_WAITS)


def rerun(first: Act, *second: Act, minutes: float = 10, **settings: Any) -> dict[str, float]:
    """The minute of the second run in which each is found first: suspected, confirmed, acts."""
    made = [
        series("a run", first, minutes=minutes, ranks=2),
        series("the next", *second, minutes=minutes, ranks=2),
    ]
    watch = RunWatch(settings_of(made[0], **settings))
    found = dict[str, float]()
    for run, each in enumerate(made, 1):
        watch.run_began(0.0 if run == 1 else 10_000.0, run)
        began_s = 0.0 if run == 1 else 10_000.0
        found.clear()
        for row in each.rows:
            t_s = began_s + row.sample.t_s
            hung = [h for beat in row.beats for h in watch.beaten(replace(beat, t_s=began_s + beat.t_s))]
            for h in (*hung, *watch.sampled(replace(row.sample, t_s=t_s))):
                name = "acts" if h.acts else h.what.value
                found.setdefault(name, round(row.sample.t_s / 60, 1))
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (STABLE, WAITS_AT_START),
        (replace(STABLE, beats=STEPS_COME), WAITS_AT_START),
        (replace(STABLE, beats=STEPS_COME), replace(WAITS_AT_START, beats=LOADS)),
        (replace(STABLE, chips=GPU_WORKS), GPU_WAITS_AT_START),
        (replace(STABLE, chips=GPU_WORKS, beats=STEPS_COME), GPU_WAITS_AT_START),
        (replace(STABLE, chips=None, beats=STEPS_COME), replace(WAITS_AT_START, chips=None)),
    ],
    ids=["npu", "npu, steps", "npu, steps, it loads", "gpu", "gpu, steps", "no chip is known, steps"],
)
def test_run_that_does_not_begin_its_work_as_the_one_before_hangs(first: Act, second: Act) -> None:
    found = rerun(first, second)
    assert 20 <= found["acts"] <= 20.5


def test_first_run_has_no_such_limit(hung: SampleSeries) -> None:
    watch = RunWatch(settings_of(hung))
    watch.run_began(0.0)
    made = series("first", WAITS_AT_START, minutes=10, ranks=2)
    assert [h for row in made.rows for h in watch.sampled(row.sample) if h.acts] == []


@pytest.mark.parametrize(
    "second",
    [
        replace(WAITS_AT_START, ranks=TRAINS),
        replace(WAITS_AT_START, ranks=SPINS),
        replace(WAITS_AT_START, helpers={"compiler": Does(cpu=40)}),
        replace(WAITS_AT_START, chips=replace(NPU_IDLE, handling="RESCHEDULE")),
        replace(WAITS_AT_START, one_rank=replace(SLEEPS, state="t")),
        replace(WAITS_AT_START, chips=NPU_WORKS, minutes=8),
        replace(WAITS_AT_START, minutes=18),
    ],
    ids=[
        "reads",
        "compiles",
        "compiles in a child",
        "a fault",
        "a debugger",
        "works at last",
        "waits for a peer",
    ],
)
def test_start_in_which_something_is_done_is_never_ended(second: Act) -> None:
    found = rerun(replace(STABLE, beats=STEPS_COME), second, replace(STABLE, beats=STEPS_COME))
    assert "acts" not in found


def test_start_may_take_six_times_as_long_as_the_longest_before() -> None:
    slow = [Act(minutes=15, ranks=TRAINS, chips=NPU_IDLE), replace(STABLE, beats=STEPS_COME)]
    made = series("slow", *slow, minutes=10, ranks=2)
    watch = RunWatch(settings_of(made))
    watch.run_began(0.0)
    for row in made.rows:
        for beat in row.beats:
            watch.beaten(beat)
        watch.sampled(row.sample)
    assert watch.start is not None
    assert (round(watch.start.seconds / 60), watch.start.by_steps) == (16, True)
    assert watch.start.seconds * 6 == HangSettings().start_limit(watch.start)


def test_start_limit_that_is_given_holds_for_each_run() -> None:
    loads = replace(WAITS_AT_START, beats=replace(LOADS, every_s=60))
    made = series("first", loads, minutes=10, ranks=2)
    watch = RunWatch(settings_of(made, start_limit_s=900.0))
    watch.run_began(0.0)
    acted = []
    for row in made.rows:
        for beat in row.beats:
            watch.beaten(beat)
        acted += [round(row.sample.t_s / 60) for each in watch.sampled(row.sample) if each.acts]
    assert acted == [15]


@pytest.mark.parametrize(
    "settings", [{"mode": HangMode.NOTIFY}, {"kind": "inference"}], ids=["notify", "inference"]
)
def test_start_is_only_reported_where_a_hang_is(settings: dict[str, Any]) -> None:
    found = rerun(STABLE, WAITS_AT_START, **settings)
    assert found.keys() == {"suspected", "confirmed"}


# ---------------------------------------------------------------------- a rank that is gone


def test_idle_chip_of_a_rank_that_is_gone_is_not_judged_by_the_cpu_of_the_others() -> None:
    """The others wait for it in a collective, and poll."""
    made = series("rank gone", replace(GPU_TRAINS, minutes=30), replace(GPU_HANGS, minutes=40), minutes=10)
    dead = Shows(use=0, power=70, traffic=0)
    gone = series("rank gone", GPU_TRAINS, replace(GPU_HANGS, minutes=40, one_chip=dead), minutes=10)
    first = made.rows[0].sample.processes[1].pid
    rows = []
    for row in gone.rows:
        is_over = row.sample.t_s > 30 * 60
        kept = tuple(each for each in row.sample.processes if not (is_over and each.pid == first))
        rows.append(replace(row, sample=replace(row.sample, processes=kept)))
    watch = RunWatch(settings_of(gone))
    acted = [round(row.sample.t_s / 60) for row in rows for each in watch.sampled(row.sample) if each.acts]
    assert acted == [40]


def test_idle_chip_whose_rank_lives_and_computes_is_not_dead() -> None:
    """Its users cannot be listed any more."""
    dead = Shows(use=0, power=70, traffic=0)
    made = series("not listed", GPU_TRAINS, replace(GPU_HANGS, minutes=40, one_chip=dead), minutes=10)
    first = made.rows[0].sample.processes[1].pid
    rows = []
    for row in made.rows:
        is_over = row.sample.t_s > 30 * 60
        processes = tuple(
            replace(each, chips=(), holds=False) if is_over and each.pid == first else each
            for each in row.sample.processes
        )
        rows.append(replace(row, sample=replace(row.sample, processes=processes)))
    watch = RunWatch(settings_of(made))
    assert [each for row in rows for each in watch.sampled(row.sample) if each.acts] == []


# ---------------------------------------------------------------------- what is learnt


def test_slowest_of_the_last_steps_is_learnt_and_holds_until_the_next_run_has_its_own() -> None:
    settings = HangSettings(mode=HangMode.RESTART)
    watch = RunWatch(settings)
    watch.run_began(0.0)
    for step in range(60):
        watch.beaten(Beat(t_s=300.0 * (step + 1), step=step, phase=ProgramPhase.TRAIN))
    assert watch.start is not None
    assert watch.start.step_s == 300.0

    watch.run_began(20_000.0, 2)
    for step in range(4):
        watch.beaten(
            Beat(t_s=20_000.0 + step, step=step, phase=[ProgramPhase.EVAL, *[ProgramPhase.TRAIN] * 3][step])
        )

    assert watch.limits()[0] == 1800.0


def test_step_that_takes_a_little_longer_is_not_noted_again() -> None:
    watch = RunWatch(HangSettings(mode=HangMode.RESTART))
    watch.run_began(0.0)
    at_s = 0.0
    for step in range(200):
        at_s += 100.0 if step < 100 else 120.0
        watch.beaten(Beat(t_s=at_s, step=step, phase=ProgramPhase.TRAIN))
    assert watch.start is not None
    assert watch.start.step_s == 100.0
