"""The tables of a node with supervised jobs: those of one that resets chips, in more ways of judging them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import JobSettings
from tests.simulation.acting.tables import acting_catalogs

STOP_S, HEAL_S = 60, 600


def _with_jobs(base: Catalog, digest: str = "", registered: bool = False) -> Catalog:
    jobs = JobSettings(in_place_registered=registered)
    return replace(
        base,
        digest=digest or base.digest,
        settings=replace(base.settings, jobs=jobs),
    )


@cache
def job_catalogs() -> Mapping[str, Catalog]:
    """By digest."""
    of_resets = acting_catalogs()
    every = [_with_jobs(of_resets[digest]) for digest in ("on", "graceful", "ask", "dry-run", "off")]
    every.append(_with_jobs(of_resets["on"], "registered", registered=True))
    return {one.digest: one for one in every}


_CALM = ("on", "graceful", "registered", "on", "ask", "graceful", "on", "registered")


def digests_of(seed: int) -> tuple[str, ...]:
    """All of them, first the one that this node mostly lives under."""
    calm = _CALM[seed % len(_CALM)]
    return (calm, *(digest for digest in job_catalogs() if digest != calm))
