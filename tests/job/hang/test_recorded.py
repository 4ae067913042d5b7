from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.job.hang.rates import Rates, key_of
from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.watch import replay
from nodeagent.job.sample import ChipSample, RunSample
from nodeagent.job.series import SampleSeries, read
from tests.job.hang.cases import NEVER, settings_of, summary

FOLDER: Final = Path(__file__).parents[2] / "fixtures" / "job_series"
ASLEEP_S: Final = 100.0


def recorded(name: str) -> SampleSeries:
    with (FOLDER / name).open() as lines:
        return read(lines, name)


def with_chip(made: SampleSeries, util: Callable[[float], float]) -> SampleSeries:
    def sampled(sample: RunSample) -> RunSample:
        chip = ChipSample(name="npu0", util=util(sample.t_s), power_w=80 + 2 * util(sample.t_s))
        return replace(sample, chips=(chip,))

    return replace(made, rows=tuple(replace(row, sample=sampled(row.sample)) for row in made.rows))


def works_until(end_s: float) -> Callable[[float], float]:
    return lambda t_s: 50.0 + t_s % 7 * 5 if t_s < end_s else 0.0


def test_a_torchrun_whose_rank_sleeps_is_confirmed_after_the_hang_time() -> None:
    made = with_chip(recorded("torchrun_asleep.jsonl"), works_until(ASLEEP_S))
    found = summary(replay(made.rows, settings_of(made)))
    assert found.acts_min is not None
    assert 0 <= found.acts_min * 60 - ASLEEP_S - made.header.T_min * 60 <= 6 * made.header.period_s


def test_a_torchrun_that_trains_is_never_suspected_even_if_its_chip_seems_idle() -> None:
    made = with_chip(recorded("torchrun_train.jsonl"), works_until(70))
    assert summary(replay(made.rows, settings_of(made))) == NEVER


def test_the_launcher_of_a_hung_torchrun_still_reads_and_writes() -> None:
    made = recorded("torchrun_asleep.jsonl")
    late = [row.sample for row in made.rows if row.sample.t_s > ASLEEP_S + 20]
    rates = Rates()
    rates.measured(late[0], None)
    found, _ = rates.measured(late[-1], late[-1].t_s - late[0].t_s)
    calls = {each.launcher: found[key_of(each)].calls or 0.0 for each in late[-1].processes}
    assert calls[True] > 1
    assert calls[False] < 1


def test_a_recorded_run_without_chips_confirms_nothing_without_beats() -> None:
    made = recorded("torchrun_asleep.jsonl")
    assert summary(replay(made.rows, HangSettings(hang_time_s=60, period_s=2))) == NEVER
