"""A slow rank is named, with what differs; what only looks like one never is."""

import pytest

from nodeagent.job.session.values import Slowed, SlowStage
from nodeagent.job.slow.watch import replay_slow
from tests.job.slow.cases import BEGINS, CHIPS_LIKE_SLOW, LOOKALIKES, SLOW, SLOW_CHIPS
from tests.job.slow.parts import Scene, series


def found(name: str, scene: Scene) -> list[tuple[float, Slowed]]:
    return [(each.t_s, each.slow) for each in replay_slow(series(name, scene).rows, scene.kind)]


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_rank_is_named_and_no_other(name: str) -> None:
    findings = [each for _, each in found(name, SLOW[name]) if each.what is SlowStage.FOUND]

    expected = "rank 6" if "pipeline" in name else "rank 2"
    assert {each.who for each in findings} == {expected}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_what_only_looks_like_a_slow_rank_is_not_named(name: str) -> None:
    assert found(name, LOOKALIKES[name]) == []


@pytest.mark.parametrize("name", SLOW_CHIPS)
def test_a_chip_is_slow_by_its_own_readings_where_the_program_reports_no_times(name: str) -> None:
    assert [(each.who, each.what) for _, each in found(name, SLOW_CHIPS[name])] == [
        ("chip2", SlowStage.FOUND)
    ]


@pytest.mark.parametrize("name", CHIPS_LIKE_SLOW)
def test_a_chip_that_only_differs_is_not_named(name: str) -> None:
    assert found(name, CHIPS_LIKE_SLOW[name]) == []


def test_half_the_speed_is_named_within_ten_steps() -> None:
    made = series("half the speed", SLOW["half the speed"])
    (first_s, _), *_ = found("half the speed", SLOW["half the speed"])
    steps = {time.step for row in made.rows for time in row.times if time.t_s <= first_s}
    assert max(steps) - BEGINS < 10
