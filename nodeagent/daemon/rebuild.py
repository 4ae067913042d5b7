"""From what the store kept to a running engine: replay the inputs, compare with what was emitted.

Restart and crash recovery are this one path. Where the store was damaged, what subscribers saw open
stays open; and whatever is wrong with what is left, there is an engine. It reads; what must be emitted it
returns.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from nodeagent.core import after_damage
from nodeagent.core.after_damage import Restorable
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import Carried, CatalogChanged, Era, Event, Hold, Ordinal, Outcome
from nodeagent.core.reconcile import PublishedState, published_by
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Damage, StoreRecovery
from nodeagent.tables.canonical import decode_catalog

log = logging.getLogger(__name__)

_PAGE_EVENTS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """``differences`` is what differs from what was emitted, normally nothing. ``damages`` go out as faults,
    and ``restored`` what was put back because of them.
    """

    engine: Engine
    differences: Outcome
    damages: tuple[Damage, ...] = ()
    restored: tuple[Restorable, ...] = ()


async def load_catalogs(
    ledger: Ledger, recovery: StoreRecovery, stand_in: Callable[[], Awaitable[Catalog]]
) -> dict[str, Catalog]:
    """Every catalog that the stored inputs were judged under, by digest.

    One that the store lost or damaged is replaced by ``stand_in``: faults judged by today's tables are
    better than a daemon that cannot start.
    """
    catalogs: dict[str, Catalog] = {}
    instead: Catalog | None = None
    for digest in digests_of(recovery):
        try:
            catalogs[digest] = await _stored_catalog(ledger, digest)
        except (StoreUnreadableError, StoreDamagedError, ValueError) as error:
            log.error(
                "catalog %s: %s; what was judged under it is judged by the tables on disk", digest, error
            )
            instead = instead or await stand_in()
            catalogs[digest] = replace(instead, digest=digest)
    return catalogs


def digests_of(recovery: StoreRecovery) -> list[str]:
    """The digest of every catalog that the stored inputs were judged under, each once."""
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


async def rebuild(ledger: Ledger, recovery: StoreRecovery, catalogs: Mapping[str, Catalog]) -> RebuildResult:
    """The engine as it was at the last commit."""
    if recovery.damages:
        return await _of_what_is_left(ledger, recovery, catalogs, recovery.damages)
    try:
        engine = replayed(recovery, catalogs)
    except Exception as error:  # the boundary of a replay: a start that fails would fail for ever
        log.exception("the stored inputs cannot be replayed")
        damage = Damage(why=f"it cannot be replayed: {type(error).__name__}: {error}", is_whole=False)
        return await _of_what_is_left(ledger, recovery, catalogs, (damage,))
    published = published_by(recovery.carried)
    async for events in _pages(ledger, recovery.carried_at_seq, recovery.last_seq):
        published.add(events)
    return RebuildResult(engine=engine, differences=_reconciled(engine, published))


async def _of_what_is_left(
    ledger: Ledger, recovery: StoreRecovery, catalogs: Mapping[str, Catalog], damages: tuple[Damage, ...]
) -> RebuildResult:
    """The most of it that can be replayed, and what is open by the history."""
    history = after_damage.History(cell for damage in damages for cell in damage.doubtful)
    published = published_by(recovery.carried)
    async for events in _pages(ledger, 0, recovery.last_seq):
        history.add(events)
        published.add(events)
    whole = replace(recovery, carried=after_damage.fit(recovery.carried))
    holds = replace(recovery, carried=_holds_of(recovery.carried), inputs=())
    nothing = replace(holds, carried=())
    for attempt in (whole, replace(whole, inputs=()), holds, nothing):
        try:
            engine = replayed(attempt, catalogs)
            restored = history.missing(engine.carry())
            if restored:
                left = after_damage.fit(engine.carry(), restored)
                engine = replayed(
                    replace(attempt, carried=left, carried_at_ns=engine.now_ns, inputs=()), catalogs
                )
        except Exception:  # as above
            log.exception("the readable part of the store cannot be replayed: trying with less of it")
            continue
        return RebuildResult(
            engine=engine, differences=_reconciled(engine, published), damages=damages, restored=restored
        )
    raise AssertionError("an engine without a past cannot fail")


def _holds_of(carried: Iterable[Carried]) -> tuple[Carried, ...]:
    """And the numbers that were given: no id may come twice."""
    return after_damage.fit(one for one in carried if isinstance(one.cell, Hold | Era | Ordinal))


def replayed(recovery: StoreRecovery, catalogs: Mapping[str, Catalog]) -> Engine:
    """The engine as it was at the last commit. ``catalogs`` must hold all of ``digests_of``."""
    engine = Engine(catalogs)
    for carried in recovery.carried:
        engine.replay(recovery.carried_at_ns, carried)
    for stamped in recovery.inputs:
        engine.replay(stamped.rule_ns, stamped.input)
    engine.resume(recovery.engine_now_ns)
    return engine


async def _pages(ledger: Ledger, after_seq: int, last_seq: int) -> AsyncIterator[list[Event]]:
    """All events that can be read, oldest first."""
    while after_seq < last_seq:
        try:
            page = await ledger.read_events(after_seq, _PAGE_EVENTS)
        except StoreUnreadableError as error:
            log.error(
                "the history cannot be read (%s): its events are not compared with the open conditions", error
            )
            return
        if not page:
            return
        yield [stored.event for stored in page]
        after_seq = page[-1].seq


def _reconciled(engine: Engine, published: PublishedState) -> Outcome:
    outcome, differences = engine.reconcile(published)
    if differences:
        log.error("%d conditions differ from the stored events: their events are emitted again", differences)
    return outcome
