"""Replays the inputs in a store: each with the tables of its time, or all with other tables.

The stored rule clock is used, and shown as the wall time that was stored with it. The state before the oldest
input is known if no input is missing in between: at the beginning of the store, or after a base. Else the
replay begins with no open fault, and ``missing`` names the gap.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    NODE,
    Carried,
    CatalogChanged,
    Device,
    DeviceSeen,
    Era,
    Event,
    EventKind,
    Input,
    SourceBack,
    Tick,
)
from nodeagent.core.state.registry import identity_of
from nodeagent.store import codec
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.queries import StateRow, read_catalogs, read_cells, read_state
from nodeagent.store.records import Stamped, StoredEvent
from nodeagent.tables.canonical import decode_catalog

SEQ: Final = 0
"""No store numbers these events."""

_PAGE_ROWS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One moment of a store.

    ``catalogs`` by digest, in the order in which they came into force. ``first`` and ``last`` number the
    ``kept`` inputs, which begin at ``begun_ns`` of the rule clock; wall time is then ``offset_ns`` more.
    """

    connection: sqlite3.Connection
    state: StateRow
    carried: tuple[Carried, ...]
    catalogs: Mapping[str, Catalog]
    first: int
    last: int
    kept: int
    begun_ns: int
    offset_ns: int

    @property
    def begins_at_base(self) -> bool:
        return self.first > self.state.base_input

    @property
    def missing(self) -> str:
        """What a replay cannot know, empty for nothing."""
        if self.first > 1 and not self.begins_at_base:
            before = f"inputs before number {self.first} are no longer stored"
            return f"{before}: what was open then, or counted then, is not known"
        if self.kept < self.last - self.first + 1:
            return f"{self.last - self.first + 1 - self.kept} inputs were lost while the disk was in trouble"
        return ""

    def inputs(self) -> Iterator[Stamped]:
        """All that are kept, oldest first. Raises StoreDamagedError, sqlite3.Error."""
        rows = self.connection.execute(
            "SELECT number, rule_ns, wall_ns, kind, body FROM input ORDER BY number"
        )
        while page := rows.fetchmany(_PAGE_ROWS):
            yield from codec.decode_inputs(page)

    def end(self) -> Stamped:
        """Time as far as the engine had come."""
        rule_ns = self.state.engine_now_ns
        offset_ns = _offset_ns(self.state)
        return Stamped(rule_ns=rule_ns, wall_ns=rule_ns + offset_ns, input=Tick())


def _offset_ns(state: StateRow) -> int:
    """From the rule clock to the wall clock, as they were last."""
    return state.anchor.wall_ns - state.anchor.rule_ns if state.anchor else 0


def read(connection: sqlite3.Connection) -> Past:
    """Raises StoreDamagedError, sqlite3.Error."""
    state = read_state(connection)
    last, kept = connection.execute("SELECT MAX(number), COUNT(*) FROM input").fetchone()
    oldest = connection.execute(
        "SELECT number, rule_ns, wall_ns FROM input ORDER BY number LIMIT 1"
    ).fetchone()
    first, begun_ns, begun_wall_ns = oldest or (
        state.base_input + 1,
        state.base_ns,
        state.base_ns + _offset_ns(state),
    )
    try:
        catalogs = {digest: decode_catalog(body) for digest, body in read_catalogs(connection)}
    except ValueError as error:
        raise StoreDamagedError(str(error)) from error
    return Past(
        connection=connection,
        state=state,
        carried=read_cells(connection, state),
        catalogs=catalogs,
        first=first,
        last=last or state.base_input,
        kept=kept,
        begun_ns=begun_ns,
        offset_ns=begun_wall_ns - begun_ns,
    )


def replay(past: Past, instead: Catalog | None) -> Iterator[StoredEvent]:
    """The events that would have been emitted, each with the number 0.

    ``instead`` judges everything in place of the catalogs of the time, and that tables changed is not emitted
    then. Raises StoreDamagedError, also where a catalog is missing, and sqlite3.Error.
    """
    catalogs = {**past.catalogs, **({} if instead is None else {instead.digest: instead})}
    engine = Engine(catalogs)
    offset_ns = past.offset_ns
    for event in _begin(engine, past, instead):
        yield StoredEvent(seq=SEQ, wall_ns=event.at_ns + offset_ns, event=event)
    for stamped in chain(past.inputs(), (past.end(),)):
        given = stamped.input
        if isinstance(given, CatalogChanged):
            if instead is not None:
                continue
            _must_be_kept(given.digest, catalogs)
        before_ns, offset_ns = offset_ns, stamped.wall_ns - stamped.rule_ns
        for event in engine.step(stamped.rule_ns, given).events:
            # What fell due before the input has the wall clock of that time.
            wall_offset_ns = before_ns if event.at_ns < stamped.rule_ns else offset_ns
            yield StoredEvent(seq=SEQ, wall_ns=event.at_ns + wall_offset_ns, event=event)


def _begin(engine: Engine, past: Past, instead: Catalog | None) -> Iterator[Event]:
    """Bring the engine to where the kept inputs begin; what other tables make of the base is emitted."""
    if past.begins_at_base:
        for carried in past.carried:
            if isinstance(carried.cell, Era) and carried.cell.digest:
                _must_be_kept(carried.cell.digest, past.catalogs)
            engine.replay(past.state.base_ns, carried)
        engine.resume(past.state.base_ns)
        digest = ""
    else:
        digest = _in_force_before(past)
        for given in _devices(past.carried):
            engine.step(past.begun_ns, given)
    digest = digest if instead is None else instead.digest
    if digest:
        changed = engine.step(past.begun_ns, CatalogChanged(digest=digest))
        yield from (event for event in changed.events if event.kind is not EventKind.TABLES_RELOADED)


def _must_be_kept(digest: str, catalogs: Mapping[str, Catalog]) -> None:
    if digest not in catalogs:
        raise StoreDamagedError(
            f"it lacks the tables {digest[:12]} that were in force; give others by --tables"
        )


def _in_force_before(past: Past) -> str:
    """The digest under which the oldest kept input was judged, where inputs before it are gone."""
    digests = list(past.catalogs)
    later = (one.input.digest for one in past.inputs() if isinstance(one.input, CatalogChanged))
    first = next(later, None)
    if first is None:
        eras = (one.cell.digest for one in past.carried if isinstance(one.cell, Era))
        return next(eras, digests[-1] if digests else "")
    place = digests.index(first) if first in digests else 0
    return digests[place - 1] if digests else ""


def _devices(carried: tuple[Carried, ...]) -> Iterator[Input]:
    """Correlation needs to know how many there are, also where their first sight is no longer stored."""
    for cell in (one.cell for one in carried):
        if isinstance(cell, Device) and cell.name != NODE and not cell.gone:
            yield DeviceSeen(
                source=cell.source,
                device=cell.name,
                kind=cell.kind,
                vendor=cell.vendor,
                identity=identity_of(cell.id),
                attributes=cell.attributes,
            )
            if not cell.unread:
                yield SourceBack(source=cell.source, device=cell.name)
