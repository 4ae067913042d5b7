"""A slow rank is named, with what differs; what only looks like one never is."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from nodeagent.job.sample import StepTime
from nodeagent.job.session.values import Slowed, SlowStage
from nodeagent.job.slow import chips, step_times
from nodeagent.job.slow.rules import FAR_BEHIND
from nodeagent.job.slow.step_times import BehindRank, StepTimes
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


def test_what_differs_is_named_once_the_samples_after_it_show_it() -> None:
    name = "two thirds of the speed, its chip is hot"
    last = [each for _, each in found(name, SLOW[name])][-1]
    assert "chip2: clock 9" in last.evidence["differs"]
    assert "chip2: temperature 93 C, peers 60 C" in last.evidence["differs"]
    assert "chip2: slowed by hw_thermal" in last.evidence["differs"]


def test_a_process_that_waits_for_a_processor_is_named_so() -> None:
    name = "a processor short of time"
    last = [each for _, each in found(name, SLOW[name])][-1]
    assert last.evidence["differs"] == "it waits 45 % of the time for a processor, peers 1 %"


def test_a_rank_that_keeps_up_again_is_reported_so_and_not_named_again_within_ten_minutes() -> None:
    scene = Scene(minutes=20, share=lambda r, s: 2.0 if r == 2 and s >= 200 and s // 50 % 2 == 0 else 1.0)
    findings = found("on and off", scene)
    assert [(each.who, each.what) for _, each in findings[:2]] == [
        ("rank 2", SlowStage.FOUND),
        ("rank 2", SlowStage.ENDED),
    ]
    named_s = [t_s for t_s, each in findings if each.what is SlowStage.FOUND]
    assert len(named_s) > 1
    assert all(later - before >= 600 for before, later in pairwise(named_s))


def moving() -> list[Slowed]:
    """Each twenty steps another rank takes twice the time."""
    scene = Scene(minutes=60, share=lambda r, s: 2.0 if s >= BEGINS and s // 20 % 4 == r else 1.0)
    return [each for _, each in found("moving", scene) if each.what is SlowStage.FOUND]


def test_slowness_that_moves_is_reported_once_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(moving()) == 1
    monkeypatch.setattr(step_times.StepTimes, "_moves", lambda _self, _peers: False)
    assert len(moving()) > 3


Break = Callable[[pytest.MonkeyPatch], None]


def power_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chips, "_draws_no_more", lambda _own, _peers: True)


def models_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def peers_of(name: str, _readings: object, working: dict[str, object]) -> list[object]:
        return [each for other, each in working.items() if other != name and each is not None]

    patch.setattr(chips, "_peers_of", peers_of)


def use_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chips, "CHIP_USE_BEHIND", 100.0)


def limits_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chips, "LIMITED", frozenset[str]())


@pytest.mark.parametrize(
    ("removed", "name"),
    [
        (power_is_ignored, "a rank with more to do is at its power limit"),
        (power_is_ignored, "a chip with a lower power limit"),
        (models_are_ignored, "an older model among newer ones"),
        (use_is_ignored, "a rank with less to do"),
        (limits_are_ignored, "a chip whose clock somebody has set"),
    ],
)
def test_without_a_part_of_the_rule_a_chip_that_only_differs_is_named(
    removed: Break, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed(monkeypatch)
    assert [each.who for _, each in found(name, CHIPS_LIKE_SLOW[name])][:1] == ["chip2"]


def agreement_is_not_needed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(step_times, "_agree", lambda _windows, **_: True)
    patch.setattr(step_times, "_is_steady", lambda _windows, _rule: True)
    patch.setattr(step_times, "_is_alone", lambda _state, _peers: True)


def steady_peers_are_not_needed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(step_times, "_is_steady", lambda _windows, _rule: True)


def one_slow_step_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(step_times, "RULES", (replace(FAR_BEHIND, slow_steps=1, lasts_s=0.0),))


@pytest.mark.parametrize(
    ("removed", "name"),
    [
        (agreement_is_not_needed, "half of the ranks do twice the work"),
        (steady_peers_are_not_needed, "sequences of different lengths#7"),
        (one_slow_step_is_enough, "rank 0 evaluates in its time each hundred steps"),
        (one_slow_step_is_enough, "rank 3 waits for data each ten steps"),
        (one_slow_step_is_enough, "sequences of different lengths"),
    ],
)
def test_without_a_part_of_the_rule_a_healthy_run_has_a_slow_rank(
    removed: Break, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed(monkeypatch)
    assert found(name, LOOKALIKES[name]) != []


def test_of_three_ranks_the_slow_one_is_named_though_it_is_half_of_what_each_other_is_compared_with() -> None:
    judge = StepTimes()
    behind: list[BehindRank] = []
    for step in range(1, 101):
        for rank in range(3):
            compute_s = 0.4 if rank == 1 and step > 40 else 0.2
            time = StepTime(t_s=0.5 * step, step=step, compute_s=compute_s, rank=rank, pid=100 + rank)
            behind += judge.given(time).behind
    assert [(each.rank, each.compute_s, each.peers_s) for each in behind] == [(1, 0.4, 0.2)]
