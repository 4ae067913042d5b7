"""From what the store kept to a running engine: replay the inputs, compare with what was told.

Restart and crash recovery are this one path. It reads; what must be told it returns.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from nodeagent.core.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Era, Outcome
from nodeagent.core.rebuilt import told_by
from nodeagent.store.errors import StoreUnreadableError
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Recovery
from nodeagent.tables.canonical import decode_catalog

log = logging.getLogger(__name__)

_PAGE_EVENTS = 4096


async def load_catalogs(
    ledger: Ledger, recovery: Recovery, stand_in: Callable[[], Catalog]
) -> dict[str, Catalog]:
    """Every catalog that the stored inputs were judged under, by digest.

    One that the store lost or damaged is replaced by ``stand_in``: faults judged by today's tables are
    better than a daemon that cannot start.
    """
    catalogs: dict[str, Catalog] = {}
    for digest in digests_of(recovery):
        try:
            catalogs[digest] = await _stored_catalog(ledger, digest)
        except (StoreUnreadableError, ValueError) as error:
            log.error(
                "catalog %s: %s; what was judged under it is judged by the tables on disk", digest, error
            )
            catalogs[digest] = replace(stand_in(), digest=digest)
    return catalogs


def digests_of(recovery: Recovery) -> list[str]:
    """Of every catalog that the stored inputs were judged under, each once."""
    digests = [
        stamped.input.digest for stamped in recovery.inputs if isinstance(stamped.input, CatalogChanged)
    ]
    digests += [carried.cell.digest for carried in recovery.carried if isinstance(carried.cell, Era)]
    return list(dict.fromkeys(filter(None, digests)))


async def _stored_catalog(ledger: Ledger, digest: str) -> Catalog:
    stored = await ledger.get_catalog(digest)
    if stored is None:
        raise ValueError("the store does not hold it")
    return decode_catalog(stored)


async def rebuild(
    ledger: Ledger, recovery: Recovery, catalogs: Mapping[str, Catalog]
) -> tuple[Engine, Outcome]:
    """The engine as it was at the last commit, and what differs from what was told (normally nothing)."""
    engine = replayed(recovery, catalogs)
    told = told_by(recovery.carried)
    after_seq = recovery.carried_at_seq
    while after_seq < recovery.last_seq:
        page = await ledger.read_events(after_seq, _PAGE_EVENTS)
        if not page:
            break
        told.add(stored.event for stored in page)
        after_seq = page[-1].seq
    outcome, differences = engine.reconcile(told)
    if differences:
        log.error("%d conditions differ from what the stored events told; told again", differences)
    return engine, outcome


def replayed(recovery: Recovery, catalogs: Mapping[str, Catalog]) -> Engine:
    """The engine as it was at the last commit. ``catalogs`` must hold all of ``digests_of``."""
    engine = Engine(catalogs)
    for carried in recovery.carried:
        engine.replay(recovery.carried_at_ns, carried)
    for stamped in recovery.inputs:
        engine.replay(stamped.rule_ns, stamped.input)
    engine.resume(recovery.engine_now_ns)
    return engine
