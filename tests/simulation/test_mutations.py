"""A simulator that cannot fail is worthless: each seeded defect must break an invariant, on few seeds."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.simulation.mutations import MUTATIONS, Mutation, catching_seed
from tests.simulation.run import simulate

SEEDS = range(1, 13)
HOURS = 24.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_mutation_breaks_an_invariant(capsys: pytest.CaptureFixture[str]) -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_caught, range(len(MUTATIONS))))
    with capsys.disabled():
        print()
        for mutation, caught in zip(MUTATIONS, found, strict=True):
            print(f"{mutation.name:55} {f'seed {caught[0]}: {caught[1]}' if caught else 'NOT CAUGHT'}")
    assert [mutation.name for mutation, caught in zip(MUTATIONS, found, strict=True) if caught is None] == []


def _caught(number: int) -> tuple[int, str] | None:
    return catching_seed(MUTATIONS[number], SEEDS, HOURS)


def test_a_mutation_ends_where_it_was_applied() -> None:
    mutation = MUTATIONS[0]
    assert catching_seed(mutation, [1], HOURS) is not None
    assert simulate(1, HOURS).broken == ""


def test_mutations_have_names_of_their_own() -> None:
    names = [mutation.name for mutation in MUTATIONS]
    assert len(set(names)) == len(names) >= 25
    assert isinstance(MUTATIONS[0], Mutation)
