"""A simulator that cannot fail is worthless: each seeded defect must break an invariant, on few seeds."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.acting import mutations as acting_mutations
from tests.simulation.jobs import mutations as job_mutations
from tests.simulation.mutations import rules
from tests.simulation.mutations.mutation import Mutation, catching_seed
from tests.simulation.reporting import mutations as reporting_mutations
from tests.simulation.run import simulate
from tests.simulation.seeds import quiet, shown_by, with_kept

SEEDS = with_kept(1, 24, "rules")
HOURS = 24.0
ACTING_SEEDS = with_kept(1, 40, "acting")
ACTING_HOURS = 100.0
JOB_SEEDS = with_kept(1, 40, "jobs")
JOB_HOURS = 6.0
REPORTING_SEEDS = with_kept(1, 10, "reports")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    quiet()
    yield
    logging.disable(logging.NOTSET)


def _name(mutation: Mutation) -> str:
    return mutation.name


@pytest.mark.parametrize("mutation", rules.MUTATIONS, ids=_name)
def test_a_mutation_of_the_rules_breaks_an_invariant(mutation: Mutation) -> None:
    assert catching_seed(mutation, [*shown_by(mutation.name), *SEEDS], HOURS) is not None


@pytest.mark.parametrize("mutation", acting_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_the_policy_breaks_an_invariant(mutation: Mutation) -> None:
    seeds = [*shown_by(mutation.name), *ACTING_SEEDS]
    assert catching_seed(mutation, seeds, ACTING_HOURS, "acting") is not None


@pytest.mark.parametrize("mutation", job_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_what_becomes_of_jobs_breaks_an_invariant(mutation: Mutation) -> None:
    seeds = [*shown_by(mutation.name), *JOB_SEEDS]
    assert catching_seed(mutation, seeds, JOB_HOURS, "jobs") is not None


@pytest.mark.parametrize("mutation", reporting_mutations.MUTATIONS, ids=_name)
def test_a_mutation_of_what_becomes_of_reports_breaks_an_invariant(mutation: Mutation) -> None:
    assert catching_seed(mutation, REPORTING_SEEDS, HOURS, "reports") is not None


def test_a_mutation_ends_where_it_was_applied() -> None:
    mutation = rules.MUTATIONS[0]
    assert catching_seed(mutation, [1], HOURS) is not None
    assert simulate(1, HOURS).broken == ""


def test_mutations_have_names_of_their_own() -> None:
    names = [
        mutation.name
        for module in (rules, acting_mutations, job_mutations, reporting_mutations)
        for mutation in module.MUTATIONS
    ]
    assert len(set(names)) == len(names) >= 80
