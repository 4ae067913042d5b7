"""Simulated nodes over days: every invariant on many seeds, and equal bytes for equal seeds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.run import simulate
from tests.simulation.seeds import play, with_kept
from tests.simulation.table import coverage_lines
from tests.simulation.transitions import CHANGES_BY_RULES, OF_RULES, Transitions, never_seen

ROOT = Path(__file__).parents[2]
SEEDS = 200
HOURS = 24.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_invariant_holds_on_two_hundred_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    results = play(with_kept(1, SEEDS), HOURS)
    together = Transitions()
    for result in results:
        together.add(result.transitions)
    missing = never_seen(together, OF_RULES, CHANGES_BY_RULES)
    with capsys.disabled():
        print("", *coverage_lines(together, missing), sep="\n")
    assert [(result.seed, result.broken) for result in results if result.broken] == []
    assert missing == []


def test_a_seed_gives_the_same_bytes_each_time() -> None:
    first, second = simulate(7, 12), simulate(7, 12)
    assert first.broken == second.broken == ""
    assert (first.digest, first.turns) == (second.digest, second.turns)
    assert first.digest != simulate(8, 12).digest


def test_a_seed_gives_the_same_bytes_in_any_process() -> None:
    digests = {_digest_under_hash_seed(hash_seed) for hash_seed in ("1", "2")}
    assert digests == {simulate(7, 12).digest}


def _digest_under_hash_seed(hash_seed: str) -> str:
    """Sets of strings come in another order in such a process."""
    command = [sys.executable, "-m", "tests.simulation", "--seed", "7", "--hours", "12"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()[-1].removeprefix("digest ")
