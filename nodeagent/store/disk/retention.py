"""Retention: what is deleted and when, by age, and by size in an order; and the reserved space is refilled.

Beyond the size limit the history of jobs is deleted first, since users write it. Then the audit log beyond
its own share, refusals and calls of readers before those of operators; then the oldest events and inputs.
The share of the audit log is never deleted for size.

Age is counted on the rule clock, which a wrong wall clock cannot move by years: a boot in 2036 makes nothing
old. The audit log has wall times only, and is kept for as long as there are events of its time.

A row that is deleted between others is emptied instead: a missing number would be damage. Never deleted:
inputs since the base of a replay, whatever their age or size, and the catalogs that retained inputs were
judged under.

Rows are deleted in short transactions on the writer's thread, so that commits pass between them. A failure
here costs space, not data: it is logged, and the next commit finds out what it means.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from nodeagent.core.model import Carried, CatalogChanged, Era, JobBegun, JobEnded, RunReported
from nodeagent.store import codec
from nodeagent.store.change import Statement
from nodeagent.store.disk.durability import Durability
from nodeagent.store.disk.thread import AbandonedError
from nodeagent.store.disk.writer import Database, used_size
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.layout import AUDIT, EMPTIED, EVENT, Row
from nodeagent.store.queries import StateRow, read_state
from nodeagent.store.tags import CARRIED, OF_INPUTS

CHUNK_ROWS = 500
PAUSE_S = 1.0
"""Between two trims that the size asks for: what comes meanwhile goes together."""

LONG_PAUSE_S = 60.0
"""Before the next where nothing more could go, and between two bases for that; none is made sooner after a
start.
"""


# Trimming goes somewhat below the limit, or every commit would bring it back to its edge.
_TRIMMED_SHARE = 0.9
_SHORT_OF_SPACE_SHARE = 0.8
_AUDIT_SHARE: Final = 16
"""The audit log may have so manieth a part of the size: some 20,000 entries of the smallest store."""

_OF_JOBS: Final = "job_"
"""Begins the kinds of events about jobs."""

_INPUTS_OF_JOBS: Final = tuple(OF_INPUTS[kind] for kind in (JobBegun, RunReported, JobEnded))
_LESSER: Final = """
what != '' AND (result LIKE 'refused: %' OR what IN ('RewindConsumer', 'DeleteConsumer', 'ReportPublicFault'))
"""
"""Entries that callers other than operators can cause."""

_AUDIT_SIZE: Final = "length(who) + length(what) + length(target) + length(result) + 24"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is to be kept: nothing for longer than ``retention_ns``, and at most ``max_size`` bytes in use.

    ``now_wall_ns`` is CLOCK_REALTIME.
    """

    retention_ns: int
    max_size: int
    now_wall_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How long (nanoseconds) and how much (bytes) is kept, and how often that is seen to."""

    retention_ns: int = 30 * 24 * 3600 * 1_000_000_000
    max_size: int = 1024 * 1024 * 1024
    upkeep_s: float = 600.0


class Upkeep:
    """``trimmed`` is called, in the loop, with the oldest event number left. ``rest_on_new_base`` lets a
    replay begin here, so that the inputs before may go; false where it cannot.
    """

    def __init__(
        self,
        durability: Durability,
        keep: RetentionPolicy,
        wall_ns: Callable[[], int],
        trimmed: Callable[[int], None],
        rest_on_new_base: Callable[[], Awaitable[bool]],
    ) -> None:
        self._durability = durability
        self._keep = keep
        self._wall_ns = wall_ns
        self._trimmed = trimmed
        self._retention = Retention()
        self._rest_on_new_base = rest_on_new_base
        self._based_s = time.monotonic()
        self._is_stuck = False
        """It is too large, and nothing more may go."""
        durability.space.max_size = keep.max_size

    async def run(self) -> None:
        """Trim at once, then every ``upkeep_s``, when the size is passed, and when the disk was found full;
        until cancelled.
        """
        while True:
            try:
                await self.trim()
            except (sqlite3.Error, OSError, StoreDamagedError, AbandonedError) as error:
                _log.warning("store: trimming failed: %s", error)
            try:
                await asyncio.wait_for(self._durability.space.due.wait(), self._keep.upkeep_s)
            except TimeoutError:
                continue
            await self._pause()

    async def _pause(self) -> None:
        """Before a trim that only the size asks for; a longer one where the last has not helped."""
        passed_s = 0.0
        while passed_s < (LONG_PAUSE_S if self._is_stuck else PAUSE_S):
            if self._durability.space.is_short:
                return
            await asyncio.sleep(PAUSE_S)
            passed_s += PAUSE_S

    async def trim(self) -> None:
        """Delete what retention allows, then refill the reserved space. While degraded it does nothing.

        Raises sqlite3.Error, OSError, StoreDamagedError, or AbandonedError when the disk hangs meanwhile.
        """
        if await self._durability.on_disk(lambda database: database.is_in_place()) is False:
            self._durability.leave(f"{self._durability.path} was removed or replaced while in use")
            return
        short_of_space, self._durability.space.is_short = self._durability.space.is_short, False
        self._durability.space.due.clear()
        max_size = await self._durability.on_disk(
            lambda database: self._size_to_keep(database, short_of_space)
        )
        if max_size is None:
            return
        bounds = Bounds(retention_ns=self._keep.retention_ns, max_size=max_size, now_wall_ns=self._wall_ns())
        await self._trim_to(bounds)
        if self._is_stuck and time.monotonic() >= self._based_s + LONG_PAUSE_S:
            self._based_s = time.monotonic()
            if await self._rest_on_new_base():
                await self._trim_to(bounds)
        await self._durability.on_disk(lambda database: database.reserved_space.refill())

    async def _trim_to(self, bounds: Bounds) -> None:
        self._retention.begin()
        while (
            oldest_seq := await self._durability.on_disk(lambda database: self._trim_chunk(database, bounds))
        ) is not None:
            self._trimmed(oldest_seq)
        self._is_stuck = bounds.max_size + self._retention.excess > self._keep.max_size

    def _size_to_keep(self, database: Database, short_of_space: bool) -> int:
        used = used_size(database.connection)
        if short_of_space:
            return min(self._keep.max_size, int(used * _SHORT_OF_SPACE_SHARE))
        if used > self._keep.max_size:
            return int(self._keep.max_size * _TRIMMED_SHARE)
        return self._keep.max_size

    def _trim_chunk(self, database: Database, bounds: Bounds) -> int | None:
        """On the thread: delete one chunk; the oldest event number left, None if nothing more may go."""
        work = self._retention.next_chunk(database.connection, bounds)
        if work is None:
            return None
        if work:
            database.execute(work)
        return read_state(database.connection).oldest_seq


class Retention:
    """It remembers how far it has looked for what makes way first: all that lies before was looked at."""

    def __init__(self) -> None:
        self._event = self._input = self._audit = 0
        self._audit_size: int | None = None
        self.excess = 0
        """The bytes beyond the size for which nothing more may go."""

    def begin(self) -> None:
        """Before each trim."""
        self._audit = 0
        self._audit_size = None

    def next_chunk(self, connection: sqlite3.Connection, bounds: Bounds) -> list[Statement] | None:
        """The statements of one short transaction; none where this part of the store has nothing to give,
        None once nothing more may go.
        """
        state = read_state(connection)
        if work := _too_old(connection, state, bounds):
            return work
        self.excess = 0
        excess = used_size(connection) - bounds.max_size
        if excess > 0:
            in_order: tuple[Callable[[], list[Statement] | None], ...] = (
                lambda: self._inputs_of_jobs(connection, state),
                lambda: self._events_of_jobs(connection, excess),
                lambda: self._audits(connection, bounds.max_size // _AUDIT_SHARE),
                lambda: _oldest(connection, state) or None,
            )
            for give in in_order:
                if (given := give()) is not None:
                    return given
            self.excess = excess
        return list(_unused_catalogs(connection)) or None

    def _events_of_jobs(self, connection: sqlite3.Connection, excess: int) -> list[Statement] | None:
        """As many as hold so many bytes; None once all were looked at."""
        select = "SELECT seq, wall_ns, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
        rows = connection.execute(select, (self._event, CHUNK_ROWS)).fetchall()
        if not rows:
            return None
        emptied = []
        for row in rows:
            if excess <= 0:
                break
            self._event, wall_ns, body = row
            if _is_of_job(row):
                emptied.append(EVENT.sealed((self._event, wall_ns, EMPTIED)))
                excess -= len(body)
        return [(EVENT.replace, emptied)] if emptied else []

    def _inputs_of_jobs(self, connection: sqlite3.Connection, state: StateRow) -> list[Statement] | None:
        """Of those before the base."""
        select = "SELECT number, kind FROM input WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
        rows = connection.execute(select, (self._input, state.base_input, CHUNK_ROWS)).fetchall()
        if not rows:
            return None
        self._input = rows[-1][0]
        found: list[Row] = [(number,) for number, kind in rows if kind in _INPUTS_OF_JOBS]
        return [("DELETE FROM input WHERE number = ?", found)] if found else []

    def _audits(self, connection: sqlite3.Connection, share: int) -> list[Statement] | None:
        """Those beyond the share: first, from the oldest, what others than operators have caused."""
        if self._audit_size is None:
            total = connection.execute(f"SELECT SUM({_AUDIT_SIZE}) FROM audit").fetchone()[0]
            self._audit_size = total or 0
        if self._audit_size <= share:
            return None
        lesser = self._first_audits(connection, f"number > {self._audit} AND {_LESSER}", share)
        if lesser:
            self._audit = lesser[-1][0]
            emptied = [AUDIT.sealed((number, wall_ns, "", "", "", "")) for number, wall_ns in lesser]
            return [(AUDIT.replace, emptied)]
        oldest = self._first_audits(connection, "TRUE", share)
        return [("DELETE FROM audit WHERE number <= ?", [(oldest[-1][0],)])] if oldest else None

    def _first_audits(self, connection: sqlite3.Connection, where: str, share: int) -> list[tuple[int, int]]:
        """(number, wall time) of as many as are too much."""
        found = []
        select = f"SELECT number, wall_ns, {_AUDIT_SIZE} FROM audit WHERE {where} ORDER BY number LIMIT ?"
        for number, wall_ns, size in connection.execute(select, (CHUNK_ROWS,)):
            if (self._audit_size or 0) <= share:
                break
            self._audit_size = (self._audit_size or 0) - size
            found.append((number, wall_ns))
        return found


def _is_of_job(row: Any) -> bool:
    """The text is looked for first: to decode an event takes longer than to read it."""
    if _OF_JOBS.encode() not in row[-1]:
        return False
    try:
        return codec.decode_event(row).event.kind.startswith(_OF_JOBS)
    except StoreDamagedError:
        return False


def _too_old(connection: sqlite3.Connection, state: StateRow, bounds: Bounds) -> list[Statement]:
    """Events before a hole are beyond retention whatever their age."""
    since_ns = state.engine_now_ns - bounds.retention_ns
    work: list[Statement] = []
    work += _delete_events(_leading(_events(connection), since_ns, state.oldest_seq))
    work += _delete("input", _leading(_inputs(connection, state), since_ns))
    audits = connection.execute("SELECT number, wall_ns FROM audit ORDER BY number LIMIT ?", (CHUNK_ROWS,))
    work += _delete("audit", _leading(audits, _audits_since_wall_ns(connection, bounds)))
    return work


def _oldest(connection: sqlite3.Connection, state: StateRow) -> list[Statement]:
    events = [number for number, _ in _events(connection)]
    inputs = [number for number, _ in _inputs(connection, state)]
    return [*_delete_events(max(events, default=0)), *_delete("input", max(inputs, default=0))]


def _delete(table: str, last: int) -> list[Statement]:
    return [(f"DELETE FROM {table} WHERE number <= ?", [(last,)])] if last else []


def _delete_events(last: int) -> list[Statement]:
    if not last:
        return []
    return [
        ("DELETE FROM event WHERE seq <= ?", [(last,)]),
        ("UPDATE state SET oldest_seq = MAX(oldest_seq, ?)", [(last + 1,)]),
    ]


def _inputs(connection: sqlite3.Connection, state: StateRow) -> sqlite3.Cursor:
    return connection.execute(
        "SELECT number, rule_ns FROM input WHERE number <= ? ORDER BY number LIMIT ?",
        (state.base_input, CHUNK_ROWS),
    )


def _events(connection: sqlite3.Connection) -> Iterator[tuple[int, int]]:
    """The oldest events, with their times on the rule clock. None is decoded before it is looked at; one that
    cannot be, or was emptied, is of no use, whatever its time.
    """
    for row in connection.execute("SELECT seq, wall_ns, body FROM event ORDER BY seq LIMIT ?", (CHUNK_ROWS,)):
        try:
            yield row[0], codec.decode_event(row).event.at_ns
        except StoreDamagedError:
            yield row[0], 0


def _audits_since_wall_ns(connection: sqlite3.Connection, bounds: Bounds) -> int:
    since_wall_ns = bounds.now_wall_ns - bounds.retention_ns
    oldest = connection.execute("SELECT wall_ns FROM event ORDER BY seq LIMIT 1").fetchone()
    return since_wall_ns if oldest is None else min(since_wall_ns, int(oldest[0]))


def _leading(rows: Iterable[tuple[int, int]], since_ns: int, oldest: int = 0) -> int:
    """The greatest number of the leading rows (number, time) that are too old, 0 for none."""
    last = 0
    for number, at_ns in rows:
        if not (number < oldest or at_ns < since_ns):
            break
        last = number
    return last


def _unused_catalogs(connection: sqlite3.Connection) -> list[Statement]:
    """Delete catalogs older than the one in force before the first that a retained input names."""
    catalogs = connection.execute("SELECT digest FROM catalog ORDER BY ordinal").fetchall()
    digests = [digest for (digest,) in catalogs]
    named = _named_digests(connection)
    first_named = next((place for place, digest in enumerate(digests) if digest in named), len(digests))
    unused: list[Row] = [(digest,) for digest in digests[: max(first_named - 1, 0)]]
    return [("DELETE FROM catalog WHERE digest = ?", unused)] if unused else []


def _named_digests(connection: sqlite3.Connection) -> set[str]:
    changes = connection.execute("SELECT kind, body FROM input WHERE kind = 'CatalogChanged'").fetchall()
    eras = connection.execute("SELECT ? || kind, body FROM carried WHERE kind = 'Era'", (CARRIED,)).fetchall()
    digests = set()
    for kind, body in (*changes, *eras):
        with suppress(StoreDamagedError):
            decoded = codec.decode_input(kind, body)
            named = decoded.cell if isinstance(decoded, Carried) else decoded
            if isinstance(named, CatalogChanged | Era):
                digests.add(named.digest)
    return digests
