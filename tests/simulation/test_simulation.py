"""Simulated nodes over days: every invariant on many seeds, and equal bytes for equal seeds.

More seeds than these: ``python -m tests.simulation --seeds 1..200``, which also says what they have seen.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodeagent.core.model import ActionState, EventKind
from tests.simulation.lives import LIVES
from tests.simulation.run import Result, simulate
from tests.simulation.seeds import play, with_kept
from tests.simulation.transitions import (
    CHANGES_BY_ACTING,
    CHANGES_BY_RULES,
    CHANGES_OF_JOBS,
    OF_ACTING,
    OF_JOBS,
    OF_RULES,
    Transition,
    Transitions,
    never_seen,
)

ROOT = Path(__file__).parents[2]
SEEDS = 40
HOURS = 24.0
ACTING_SEEDS = 40
REPORTING_SEEDS = 20
ACTING_HOURS = 100.0
JOB_SEEDS = 40
JOB_HOURS = 6.0
HOURS_OF_BYTES = {"rules": 12.0, "acting": 12.0, "jobs": 3.0, "reports": 12.0}
"""Jobs have more turns in three hours than the others in twelve."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_holds_on_many_seeds() -> None:
    _check(play(with_kept(1, SEEDS), HOURS), OF_RULES, CHANGES_BY_RULES)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_of_resets_holds_over_thousands_of_hours() -> None:
    results = play(with_kept(1, ACTING_SEEDS, "acting"), ACTING_HOURS, "acting")
    ends = _check(results, OF_ACTING, CHANGES_BY_ACTING).ends
    assert len(results) * ACTING_HOURS >= 4_000
    assert [state.value for state in ActionState if ends[state] < 40] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_invariant_of_supervised_jobs_holds_on_many_seeds() -> None:
    _check(play(with_kept(1, JOB_SEEDS, "jobs"), JOB_HOURS, "jobs"), OF_JOBS, CHANGES_OF_JOBS)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_invariant_of_reports_holds_on_many_seeds() -> None:
    life = LIVES["reports"]
    _check(play(with_kept(1, REPORTING_SEEDS, "reports"), HOURS, "reports"), life.kinds, life.changes)


def _check(
    results: list[Result], kinds: frozenset[EventKind], changes: tuple[Transition, ...]
) -> Transitions:
    """No invariant broken, and everything seen that a life must show. What was seen."""
    together = Transitions()
    for result in results:
        together.add(result.transitions)
    missing = never_seen(together, kinds, changes)
    assert [(result.seed, result.broken) for result in results if result.broken] == []
    assert missing == []
    return together


@pytest.mark.parametrize("life", HOURS_OF_BYTES)
def test_a_seed_gives_the_same_bytes_each_time(life: str) -> None:
    hours = HOURS_OF_BYTES[life]
    first, second = simulate(7, hours, life=life), simulate(7, hours, life=life)
    assert first.broken == second.broken == ""
    assert (first.digest, first.turns) == (second.digest, second.turns)
    assert first.digest != simulate(8, hours, life=life).digest


@pytest.mark.parametrize("life", HOURS_OF_BYTES)
def test_a_seed_gives_the_same_bytes_in_any_process(life: str) -> None:
    digests = {_digest_under_hash_seed(hash_seed, life) for hash_seed in ("1", "2")}
    assert digests == {simulate(7, HOURS_OF_BYTES[life], life=life).digest}


def _digest_under_hash_seed(hash_seed: str, life: str) -> str:
    """Sets of strings come in another order in such a process."""
    hours = str(HOURS_OF_BYTES[life])
    command = [sys.executable, "-m", "tests.simulation", "--life", life, "--seed", "7", "--hours", hours]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].removeprefix("digest ")
