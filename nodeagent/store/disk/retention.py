"""What may be deleted: by age and by size, oldest first, one chunk at a time.

Age is counted on the rule clock, which no wrong wall clock moves by years: a boot in 2036 makes nothing old.
The audit log has wall times only, and is kept for as long as there are events of its time.

Never deleted: inputs since the base of a replay, whatever their age or size, and the catalogs that
retained inputs were judged under. When to trim is the upkeep's decision.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from nodeagent.core.model import Carried, CatalogChanged, Era
from nodeagent.store import codec
from nodeagent.store.change import Statement
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.layout import Row
from nodeagent.store.queries import read_state
from nodeagent.store.tags import CARRIED

CHUNK_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is to be kept: nothing for longer than ``retention_ns``, and at most ``max_size`` bytes in use.

    ``now_wall_ns`` is CLOCK_REALTIME.
    """

    retention_ns: int
    max_size: int
    now_wall_ns: int


def used_size(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something; pages freed by deletes are used again first."""
    pages, free, page_size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * page_size)


def next_chunk(connection: sqlite3.Connection, bounds: Bounds) -> list[Statement]:
    """The statements of one short transaction of deletes; empty when nothing more may go."""
    state = read_state(connection)
    too_big = used_size(connection) > bounds.max_size
    since_ns = state.engine_now_ns - bounds.retention_ns
    work: list[Statement] = []
    # Events before a hole are beyond retention whatever their age.
    last = _last_to_go(_events(connection), since_ns, too_big, state.oldest_seq)
    if last:
        work.append(("DELETE FROM event WHERE seq <= ?", [(last,)]))
        work.append(("UPDATE state SET oldest_seq = MAX(oldest_seq, ?)", [(last + 1,)]))
    inputs = connection.execute(
        "SELECT number, rule_ns FROM input WHERE number <= ? ORDER BY number LIMIT ?",
        (state.base_input, CHUNK_ROWS),
    )
    last = _last_to_go(inputs, since_ns, too_big)
    if last:
        work.append(("DELETE FROM input WHERE number <= ?", [(last,)]))
    audits = connection.execute("SELECT number, wall_ns FROM audit ORDER BY number LIMIT ?", (CHUNK_ROWS,))
    last = _last_to_go(audits, _audits_since_wall_ns(connection, bounds), too_big)
    if last:
        work.append(("DELETE FROM audit WHERE number <= ?", [(last,)]))
    if not work:
        work.extend(_unused_catalogs(connection))
    return work


def _events(connection: sqlite3.Connection) -> Iterator[tuple[int, int]]:
    """The oldest events, with their times on the rule clock. None is decoded before it is looked at; one that
    cannot be is of no use, whatever its time.
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


def _last_to_go(rows: Iterable[tuple[int, int]], since_ns: int, too_big: bool, oldest: int = 0) -> int:
    """The greatest number of the leading rows (number, time) that may go, 0 for none."""
    last = 0
    for number, at_ns in rows:
        if not (too_big or number < oldest or at_ns < since_ns):
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
