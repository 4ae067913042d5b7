"""What the parts do by themselves, where a series of a whole job would show it badly."""

import random

import pytest

from nodeagent.job.hang.processes import Members, RankProcess
from nodeagent.job.hang.rates import LEAST, LONGEST, ProcessKey, ProcessRate, Rates, UsualValue
from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.timers import Beats
from nodeagent.job.sample import Beat, ChipSample, ProcessSample, ProgramPhase, RunSample

S = HangSettings()


def process(pid: int, ppid: int = 1, **more: object) -> ProcessSample:
    return ProcessSample(pid=pid, ppid=ppid, **more)  # type: ignore[arg-type]  # each test names its own


# ---------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("hang_time_s", "window_s", "arming_s", "bursts_s"),
    [(43_200, 300, 600, 600), (600, 300, 600, 600), (60, 30, 60, 60), (6, 3, 6, 6)],
)
def test_windows_shrink_only_below_the_shortest_hang_time_of_a_policy(
    hang_time_s: float, window_s: float, arming_s: float, bursts_s: float
) -> None:
    made = HangSettings(hang_time_s=hang_time_s, period_s=min(10, hang_time_s / 200))
    assert (made.window_s, made.arming_s, made.between_bursts_s) == (window_s, arming_s, bursts_s)
    assert (made.slow_time_s, made.start_time_s) == (7200, 7200)


@pytest.mark.parametrize(("hang_time_s", "suspicion_s"), [(600, 450), (900, 450), (1800, 900), (3600, 1800)])
def test_suspicion_comes_at_half_the_time_but_not_before_a_chip_can_be_flat(
    hang_time_s: float, suspicion_s: float
) -> None:
    assert HangSettings(hang_time_s=hang_time_s).suspicion_s(hang_time_s) == suspicion_s


def test_a_period_that_is_too_long_for_the_window_is_refused() -> None:
    with pytest.raises(ValueError, match="period_s: 10 is too long for hang_time_s 60: at most 5"):
        HangSettings(hang_time_s=60)


# ---------------------------------------------------------------------- rates


def test_bytes_are_the_greater_of_what_was_called_for_and_what_reached_the_device() -> None:
    rates = Rates()
    before = process(7, rchar=100, read_bytes=0, wchar=0, write_bytes=50, syscr=1, syscw=1, cpu_s=1.0)
    after = process(7, rchar=300, read_bytes=900, wchar=500, write_bytes=60, syscr=6, syscw=16, cpu_s=2.0)
    rates.measured(RunSample(t_s=0, processes=(before,)), None)
    found, _ = rates.measured(RunSample(t_s=10, processes=(after,)), 10)
    assert found == {ProcessKey(7, 0): (10, 140, 2, 6, False)}


def test_a_counter_that_stepped_back_or_is_not_read_tells_nothing() -> None:
    rates = Rates()
    rates.measured(
        RunSample(t_s=0, processes=(process(7, rchar=9, wchar=9, syscr=9, syscw=9, cpu_s=9.0),)), None
    )
    found, _ = rates.measured(RunSample(t_s=10, processes=(process(7, rchar=1, wchar=9, syscr=9),)), 10)
    assert found[ProcessKey(7, 0)] == (10, None, None, None, False)


def test_a_pid_that_is_used_again_is_another_process() -> None:
    rates = Rates()
    old = process(7, start_time=1, rchar=900, wchar=0, syscr=0, syscw=0, cpu_s=50.0)
    new = process(7, start_time=2, rchar=40, wchar=0, syscr=0, syscw=0, cpu_s=1.0)
    rates.measured(RunSample(t_s=0, processes=(old,)), None)
    found, _ = rates.measured(RunSample(t_s=10, processes=(new,)), 10)
    assert found == {ProcessKey(7, 2): (10, 4, 0, 6, True)}


def test_links_that_tell_one_direction_tell_enough() -> None:
    rates = Rates()
    rates.measured(RunSample(t_s=0, chips=(ChipSample(name="npu0", rx_bytes=5),)), None)
    _, traffic = rates.measured(RunSample(t_s=10, chips=(ChipSample(name="npu0", rx_bytes=105),)), 10)
    assert traffic == {"npu0": 10}


# ---------------------------------------------------------------------- members

TREE = (
    process(100, launcher=True),
    process(201, 100, has_rank=True),
    process(202, 100, has_rank=True),
    process(301, 201, has_rank=True),
    process(400, 100),
)


def ranks_of(*processes: ProcessSample) -> list[int]:
    return [each.pid for each in Members().of(RunSample(t_s=0, processes=processes)).ranks]


def test_ranks_are_those_that_hold_a_chip() -> None:
    assert ranks_of(
        process(100, launcher=True), process(201, 100, holds=True), process(400, 100, holds=False)
    ) == [201]


def test_a_command_that_holds_a_chip_itself_is_a_rank() -> None:
    assert ranks_of(process(100, launcher=True, holds=True), process(201, 100, holds=False)) == [100]


def test_without_holders_a_worker_that_inherited_rank_is_none() -> None:
    assert ranks_of(*TREE) == [201, 202]


def test_without_either_the_launcher_s_children_are_ranks() -> None:
    assert ranks_of(process(100, launcher=True), process(201, 100), process(301, 201)) == [201]


def test_a_command_alone_is_its_own_rank() -> None:
    assert ranks_of(process(100, launcher=True)) == [100]


@pytest.mark.parametrize("holds", [None, False])
def test_who_held_a_chip_stays_a_rank_while_nobody_is_listed(holds: bool | None) -> None:
    launcher = process(100, launcher=True, holds=False)
    members = Members()
    members.of(RunSample(t_s=0, processes=(launcher, process(201, 100, holds=True))))
    roles = members.of(
        RunSample(
            t_s=10, processes=(launcher, process(201, 100, holds=holds), process(400, 100, holds=holds))
        )
    )
    assert [each.pid for each in roles.ranks] == [201]
    assert [each.pid for each in roles.others] == [400]


def test_a_zombie_is_nobody() -> None:
    assert ranks_of(process(100, launcher=True), process(201, 100, holds=True, state="Z")) == [100]


# ---------------------------------------------------------------------- quiet


def quiet_since(megabytes_per_s: list[float]) -> float | None:
    """Of a rank that was measured each ten seconds."""
    rank = RankProcess(S)
    for number, each in enumerate(megabytes_per_s, 1):
        rank.measured(number * 10, ProcessRate(10, each * 1e6, 0, 0, is_new=False))
    return rank.quiet_since_s


@pytest.mark.parametrize(
    ("megabytes_per_s", "since_s"),
    [
        ([0] * 5, None),
        ([0] * 6, 0),
        ([9, 9] + [0] * 6, 20),
        ([0] * 6 + [9], 0),
        ([0] * 6 + [9, 9], 0),
        ([0] * 6 + [9, 9, 9], None),
        ([0] * 6 + [9] + [0] * 20 + [9], None),
        ([0] * 6 + [9] + [0] * 60 + [9], 0),
    ],
)
def test_a_rank_is_quiet_over_six_samples_but_for_one_burst_in_ten_minutes(
    megabytes_per_s: list[float], since_s: float | None
) -> None:
    assert quiet_since(megabytes_per_s) == since_s


# ---------------------------------------------------------------------- what is usual


def test_a_value_counts_only_after_the_delay_and_doubt_drops_what_waits() -> None:
    baseline = UsualValue(delay=3)
    for value in [10.0] * LEAST + [90.0] * 3:
        baseline.learn(value)
    assert baseline.median() == 10
    baseline.doubt()
    for value in [20.0] * (LEAST + 3):
        baseline.learn(value)
    assert baseline.median() == 15


def test_the_median_is_that_of_the_newest_two_hours() -> None:
    chance = random.Random(1)
    baseline = UsualValue(delay=0)
    values = [chance.random() for _ in range(2000)]
    for value in values:
        baseline.learn(value)
    newest = sorted(values[-LONGEST:])
    assert baseline.median() == (newest[LONGEST // 2 - 1] + newest[LONGEST // 2]) / 2


# ---------------------------------------------------------------------- beats


def beaten(*beats: Beat, settings: HangSettings = S) -> Beats:
    made = Beats(settings, 0)
    for each in beats:
        made.beaten(each)
    return made


def steps(
    count: int, every_s: float, phase: ProgramPhase = ProgramPhase.TRAIN, first_s: float = 0
) -> list[Beat]:
    return [Beat(t_s=first_s + n * every_s, step=n, phase=phase) for n in range(count)]


EVAL = Beat(t_s=1, phase=ProgramPhase.EVAL)


@pytest.mark.parametrize(
    ("beats", "limit_s"),
    [
        ([], 7200),
        (steps(1, 20), 7200),
        (steps(9, 20), 1800),
        ([EVAL, *steps(9, 20, first_s=2)], 600),
        ([EVAL, *steps(9, 150, first_s=2)], 900),
        ([EVAL, *steps(9, 900, first_s=2)], 1800),
        ([Beat(t_s=1, phase=ProgramPhase.LOAD), *steps(9, 20, first_s=2)], 1800),
        ([*steps(9, 20), Beat(t_s=999, step=8, phase=ProgramPhase.CHECKPOINT)], 7200),
    ],
)
def test_the_limit_follows_from_what_was_told(beats: list[Beat], limit_s: float) -> None:
    assert beaten(*beats).limit_s(chips_readable=True) == limit_s


def test_the_limit_is_the_hang_time_where_chips_cannot_be_read() -> None:
    assert beaten(EVAL, *steps(9, 20, first_s=2)).limit_s(chips_readable=False) == 1800


def test_the_slowest_interval_is_forgotten_after_fifty() -> None:
    beats = [EVAL, *steps(3, 200, first_s=2)]
    slow = beaten(*beats)
    fast = beaten(*beats, *[Beat(t_s=500 + n, step=10 + n) for n in range(51)])
    assert slow.limit_s(chips_readable=True) == 1200
    assert fast.limit_s(chips_readable=True) == 600


def test_a_step_back_is_an_advance_and_the_same_step_is_none() -> None:
    beats = beaten(*steps(3, 20))
    assert beats.beaten(Beat(t_s=60, step=1))
    assert not beats.beaten(Beat(t_s=80, step=1))
    assert beats.still_s(100) == 40


def test_a_beat_that_is_older_than_the_ranks_counts_for_nothing() -> None:
    beats = Beats(S, 100)
    assert not beats.beaten(Beat(t_s=99, step=1))
    assert not beats.received
