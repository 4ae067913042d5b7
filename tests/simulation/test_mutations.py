"""A simulator that cannot fail is worthless: each seeded defect must break an invariant, on few seeds."""

import pytest

from tests.simulation import mutations
from tests.simulation.acting import mutations as acting_mutations
from tests.simulation.mutating import Mutation, catch_all, catching_seed, caught_lines
from tests.simulation.run import simulate
from tests.simulation.seeds import with_kept

SEEDS = with_kept(1, 24, "rules")
HOURS = 24.0
ACTING_SEEDS = with_kept(1, 40, "acting")
ACTING_HOURS = 100.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_mutation_of_the_rules_breaks_an_invariant(capsys: pytest.CaptureFixture[str]) -> None:
    found = catch_all(mutations.__name__, SEEDS, HOURS)
    with capsys.disabled():
        print("", *caught_lines(mutations.MUTATIONS, found), sep="\n")
    assert _missed(mutations.MUTATIONS, found) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_mutation_of_the_policy_breaks_an_invariant(capsys: pytest.CaptureFixture[str]) -> None:
    found = catch_all(acting_mutations.__name__, ACTING_SEEDS, ACTING_HOURS, "acting")
    with capsys.disabled():
        print("", *caught_lines(acting_mutations.MUTATIONS, found), sep="\n")
    assert _missed(acting_mutations.MUTATIONS, found) == []


def test_a_mutation_ends_where_it_was_applied() -> None:
    mutation = mutations.MUTATIONS[0]
    assert catching_seed(mutation, [1], HOURS) is not None
    assert simulate(1, HOURS).broken == ""


def test_mutations_have_names_of_their_own() -> None:
    names = [mutation.name for mutation in (*mutations.MUTATIONS, *acting_mutations.MUTATIONS)]
    assert len(set(names)) == len(names) >= 80


def _missed(every: tuple[Mutation, ...], found: list[tuple[int, str] | None]) -> list[str]:
    return [mutation.name for mutation, caught in zip(every, found, strict=True) if caught is None]
