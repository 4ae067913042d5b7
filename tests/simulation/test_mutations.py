"""A simulator that cannot fail is worthless: each seeded defect must break an invariant, on few seeds."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.acting import mutations as acting_mutations
from tests.simulation.common_causes import mutations as common_mutations
from tests.simulation.jobs import mutations as job_mutations
from tests.simulation.mutations import rules
from tests.simulation.mutations.mutation import Mutation, catching_seed
from tests.simulation.reporting import mutations as reporting_mutations
from tests.simulation.run import simulate
from tests.simulation.seeds import PLAYED, played, quiet, shown_by


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    quiet()
    yield
    logging.disable(logging.NOTSET)


def _name(mutation: Mutation) -> str:
    return mutation.name


def _catching_seed(mutation: Mutation, life: str) -> int | None:
    """Of the seeds that are also played without it: what they play would show it."""
    seeds = played(life)
    shows = shown_by(mutation.name)
    assert set(shows) <= set(seeds)
    caught = catching_seed(mutation, [*shows, *seeds], PLAYED[life][1], life)
    return None if caught is None else caught[0]


@pytest.mark.parametrize("mutation", rules.MUTATIONS, ids=_name)
def test_a_mutation_of_the_rules_breaks_an_invariant(mutation: Mutation) -> None:
    assert _catching_seed(mutation, "rules") is not None


@pytest.mark.parametrize("mutation", acting_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_the_policy_breaks_an_invariant(mutation: Mutation) -> None:
    assert _catching_seed(mutation, "acting") is not None


@pytest.mark.parametrize("mutation", job_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_what_becomes_of_jobs_breaks_an_invariant(mutation: Mutation) -> None:
    assert _catching_seed(mutation, "jobs") is not None


@pytest.mark.parametrize("mutation", reporting_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_what_becomes_of_reports_breaks_an_invariant(mutation: Mutation) -> None:
    assert _catching_seed(mutation, "reports") is not None


@pytest.mark.parametrize("mutation", common_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_what_is_common_breaks_an_invariant(mutation: Mutation) -> None:
    assert _catching_seed(mutation, "common") is not None


def test_a_mutation_ends_where_it_was_applied() -> None:
    mutation, hours = rules.MUTATIONS[0], 6.0
    (seed,) = shown_by(mutation.name)
    assert catching_seed(mutation, [seed], hours) is not None
    assert simulate(seed, hours).broken == ""


def test_mutations_have_names_of_their_own() -> None:
    names = [
        mutation.name
        for module in (rules, acting_mutations, job_mutations, reporting_mutations, common_mutations)
        for mutation in module.MUTATIONS
    ]
    assert len(set(names)) == len(names) >= 80
