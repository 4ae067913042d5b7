"""The lives that a simulated node can have: about rules, about resets, about what other systems report, about
what several devices have at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import EventKind
from tests.simulation.acting.chip_faults import CHIP_FAULTS
from tests.simulation.acting.hardware import grouped_parts
from tests.simulation.acting.invariants import acting_invariants
from tests.simulation.acting.people import PEOPLE, all_leave
from tests.simulation.acting.tables import acting_catalogs, digests_of
from tests.simulation.catalogs import catalogs
from tests.simulation.common_causes.activities import BRAKES, common_catalogs
from tests.simulation.common_causes.activities import INTERRUPTIONS as INTERRUPTIONS_OF_BRAKES
from tests.simulation.common_causes.activities import PAUSES_NS as PAUSES_OF_BRAKES_NS
from tests.simulation.common_causes.activities import digests_of as digests_of_brakes
from tests.simulation.common_causes.twin import CommonCausesStand
from tests.simulation.faults import FAULTS, HOUR_NS, MINUTE_NS
from tests.simulation.interruptions import INTERRUPTIONS
from tests.simulation.invariants import all_invariants, general_invariants
from tests.simulation.jobs.activities import FAULTS as FAULTS_UNDER_JOBS
from tests.simulation.jobs.activities import INTERRUPTIONS as INTERRUPTIONS_OF_JOBS
from tests.simulation.jobs.activities import JOBS, all_end, free_parts
from tests.simulation.jobs.invariants import job_invariants
from tests.simulation.jobs.tables import digests_of as digests_of_jobs
from tests.simulation.jobs.tables import job_catalogs
from tests.simulation.reporting.activities import INTERRUPTIONS as INTERRUPTIONS_OF_REPORTS
from tests.simulation.reporting.activities import PAUSES_NS, REPORTS, reporting_catalogs
from tests.simulation.reporting.twin import ReportsStand
from tests.simulation.surroundings import SURROUNDINGS
from tests.simulation.transitions import (
    CHANGES_BY_ACTING,
    CHANGES_BY_RULES,
    CHANGES_OF_JOBS,
    OF_ACTING,
    OF_JOBS,
    OF_RULES,
    Transition,
)
from tests.simulation.watch import Invariant
from tests.simulation.world import Activity, Part, World, mixed_parts

Activities = tuple[Callable[[World], Activity], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """``activities`` are chosen by ``weights``, ``pauses_ns`` apart; ``digests`` by seed, the usual first.

    ``ends`` says what is over in the end. ``kinds`` of events and ``changes`` must be seen in many of them.
    """

    parts: Callable[[], list[Part]]
    catalogs: Callable[[], Mapping[str, Catalog]]
    digests: Callable[[int], Sequence[str]]
    activities: tuple[Activities, ...]
    weights: tuple[int, ...]
    pauses_ns: tuple[int, ...]
    invariants: Callable[[], list[Invariant]]
    ends: Callable[[World], None]
    kinds: frozenset[EventKind]
    changes: tuple[Transition, ...]


LIVES: Mapping[str, Life] = {
    "rules": Life(
        parts=mixed_parts,
        catalogs=catalogs,
        digests=lambda _: tuple(catalogs()),
        activities=(FAULTS, SURROUNDINGS, INTERRUPTIONS),
        weights=(12, 3, 5),
        pauses_ns=(0, SECOND_NS, MINUTE_NS, 10 * MINUTE_NS, HOUR_NS, 2 * HOUR_NS),
        invariants=all_invariants,
        ends=lambda _: None,
        kinds=OF_RULES,
        changes=CHANGES_BY_RULES,
    ),
    "acting": Life(
        parts=grouped_parts,
        catalogs=acting_catalogs,
        digests=digests_of,
        activities=(CHIP_FAULTS, PEOPLE, INTERRUPTIONS),
        weights=(6, 3, 3),
        pauses_ns=(MINUTE_NS, 10 * MINUTE_NS, HOUR_NS, 7 * HOUR_NS, 20 * HOUR_NS, 40 * HOUR_NS),
        invariants=acting_invariants,
        ends=all_leave,
        kinds=OF_ACTING,
        changes=CHANGES_BY_ACTING,
    ),
    "jobs": Life(
        parts=free_parts,
        catalogs=job_catalogs,
        digests=digests_of_jobs,
        activities=(JOBS, FAULTS_UNDER_JOBS, INTERRUPTIONS_OF_JOBS),
        weights=(6, 6, 2),
        pauses_ns=(0, SECOND_NS, MINUTE_NS, 5 * MINUTE_NS, 20 * MINUTE_NS),
        invariants=job_invariants,
        ends=all_end,
        kinds=OF_JOBS - {EventKind.JOB_SLOW},  # no twin of a supervisor measures its ranks
        changes=CHANGES_OF_JOBS,
    ),
    "reports": Life(
        parts=mixed_parts,
        catalogs=reporting_catalogs,
        digests=lambda _: tuple(reporting_catalogs()),
        activities=(REPORTS, INTERRUPTIONS_OF_REPORTS),
        weights=(12, 2),
        pauses_ns=PAUSES_NS,
        invariants=lambda: [*general_invariants(reporting_catalogs()), ReportsStand()],
        ends=lambda _: None,
        kinds=frozenset({EventKind.RAISED, EventKind.CLEARED}),
        changes=(),
    ),
    "common": Life(
        parts=mixed_parts,
        catalogs=common_catalogs,
        digests=digests_of_brakes,
        activities=(BRAKES, INTERRUPTIONS_OF_BRAKES),
        weights=(10, 3),
        pauses_ns=PAUSES_OF_BRAKES_NS,
        invariants=lambda: [*general_invariants(common_catalogs()), CommonCausesStand()],
        ends=lambda _: None,
        kinds=frozenset({EventKind.RAISED, EventKind.CLEARED, EventKind.TABLES_RELOADED}),
        changes=(),
    ),
}
