"""A simulator that cannot fail is worthless: each seeded defect must break an invariant, on few seeds."""

import pytest

from tests.simulation.mutations import MUTATIONS, catch_all, catching_seed
from tests.simulation.run import simulate

SEEDS = range(1, 25)
HOURS = 24.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_mutation_breaks_an_invariant(capsys: pytest.CaptureFixture[str]) -> None:
    found = catch_all(SEEDS, HOURS)
    with capsys.disabled():
        print()
        for mutation, caught in zip(MUTATIONS, found, strict=True):
            print(f"{mutation.name:55} {f'seed {caught[0]}: {caught[1]}' if caught else 'NOT CAUGHT'}")
    assert [mutation.name for mutation, caught in zip(MUTATIONS, found, strict=True) if caught is None] == []


def test_a_mutation_ends_where_it_was_applied() -> None:
    mutation = MUTATIONS[0]
    assert catching_seed(mutation, [1], HOURS) is not None
    assert simulate(1, HOURS).broken == ""


def test_mutations_have_names_of_their_own() -> None:
    names = [mutation.name for mutation in MUTATIONS]
    assert len(set(names)) == len(names) >= 25
