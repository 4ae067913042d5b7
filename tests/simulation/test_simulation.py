"""Simulated nodes over days: every invariant on many seeds, and equal bytes for equal seeds.

More seeds than these: ``python -m tests.simulation --seeds 1..200``, which also says what they have seen.
"""

import os
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from nodeagent.core.model import ActionState
from tests.simulation.lives import LIVES
from tests.simulation.run import Result, simulate
from tests.simulation.seeds import PLAYED, played, players
from tests.simulation.transitions import Transitions, never_seen

HOURS_OF_BYTES = {"rules": 12.0, "acting": 12.0, "jobs": 3.0, "reports": 12.0, "common": 12.0}
"""Jobs have more turns in three hours than the others in twelve."""

PROCESSES = max(2, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Playing:
    """``again``: one seed, in each of the processes, after all others."""

    of_seeds: dict[str, list[Future[Result]]]
    again: dict[str, list[Future[Result]]]

    def results(self, life: str) -> list[Result]:
        return [each.result() for each in self.of_seeds[life]]


@pytest.fixture(scope="module")
def playing() -> Iterator[_Playing]:
    with players(PROCESSES) as all_of_them:
        yield _Playing(
            of_seeds={
                life: [all_of_them.play(seed, PLAYED[life][1], life) for seed in played(life)]
                for life in LIVES
            },
            again={life: all_of_them.play_in_each(7, HOURS_OF_BYTES[life], life) for life in LIVES},
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_holds_on_many_seeds(playing: _Playing) -> None:
    _check(playing.results("rules"), "rules")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_of_resets_holds_over_thousands_of_hours(playing: _Playing) -> None:
    results = playing.results("acting")
    ends = _check(results, "acting").ends
    assert len(results) * PLAYED["acting"][1] >= 2_500
    assert [state.value for state in ActionState if ends[state] < 40] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_of_supervised_jobs_holds_on_many_seeds(playing: _Playing) -> None:
    _check(playing.results("jobs"), "jobs")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_of_reports_holds_on_many_seeds(playing: _Playing) -> None:
    _check(playing.results("reports"), "reports")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_of_common_causes_holds_on_many_seeds(playing: _Playing) -> None:
    _check(playing.results("common"), "common")


def _check(results: list[Result], life: str) -> Transitions:
    """No invariant broken, and everything seen that a life must show. What was seen."""
    together = Transitions()
    for result in results:
        together.add(result.transitions)
    missing = never_seen(together, LIVES[life].kinds, LIVES[life].changes)
    assert [(result.seed, result.broken) for result in results if result.broken] == []
    assert missing == []
    return together


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("life", LIVES)
def test_a_seed_gives_the_same_bytes_each_time_and_in_any_process(playing: _Playing, life: str) -> None:
    """Whatever was played there before, and in whichever order its sets of texts come."""
    here = simulate(7, HOURS_OF_BYTES[life], life=life)
    elsewhere = [each.result() for each in playing.again[life]]
    assert here.broken == ""
    assert {(each.digest, each.turns) for each in elsewhere} == {(here.digest, here.turns)}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("life", LIVES)
def test_each_seed_gives_other_bytes(playing: _Playing, life: str) -> None:
    results = playing.results(life)
    assert len({result.digest for result in results}) == len(results)
