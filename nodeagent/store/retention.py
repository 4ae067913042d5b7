"""What may be deleted: by age and by size, oldest first, one chunk at a time.

Never deleted: inputs since the base of a replay, whatever their age or size, and the catalogs that
retained inputs were judged under. When to trim is the upkeep's decision.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.core.model import CatalogChanged, Era
from nodeagent.store import codec
from nodeagent.store.change import SqlValue, Statement
from nodeagent.store.reader import read_state

CHUNK_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is to be kept: nothing older than ``since_wall_ns``, and at most ``max_size`` bytes in use."""

    since_wall_ns: int
    max_size: int


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
    work: list[Statement] = []
    rows = connection.execute("SELECT seq, wall_ns FROM event ORDER BY seq LIMIT ?", (CHUNK_ROWS,)).fetchall()
    # Events before a hole are beyond retention whatever their age.
    last = _last_to_go(rows, state.oldest_seq, bounds, too_big)
    if last:
        work.append(("DELETE FROM event WHERE seq <= ?", [(last,)]))
        work.append(("UPDATE state SET oldest_seq = MAX(oldest_seq, ?)", [(last + 1,)]))
    rows = connection.execute(
        "SELECT number, wall_ns FROM input WHERE number <= ? ORDER BY number LIMIT ?",
        (state.base_input, CHUNK_ROWS),
    ).fetchall()
    last = _last_to_go(rows, 0, bounds, too_big)
    if last:
        work.append(("DELETE FROM input WHERE number <= ?", [(last,)]))
    rows = connection.execute(
        "SELECT number, wall_ns FROM audit ORDER BY number LIMIT ?", (CHUNK_ROWS,)
    ).fetchall()
    last = _last_to_go(rows, 0, bounds, too_big)
    if last:
        work.append(("DELETE FROM audit WHERE number <= ?", [(last,)]))
    if not work:
        work.extend(_unused_catalogs(connection))
    return work


def _last_to_go(rows: Iterable[tuple[int, int]], oldest: int, bounds: Bounds, too_big: bool) -> int:
    """The greatest number of the leading rows that may go, 0 for none."""
    last = 0
    for number, wall_ns in rows:
        if not (too_big or number < oldest or wall_ns < bounds.since_wall_ns):
            break
        last = number
    return last


def _unused_catalogs(connection: sqlite3.Connection) -> list[Statement]:
    """Delete catalogs older than the one in force before the first that a retained input names."""
    catalogs = connection.execute("SELECT digest FROM catalog ORDER BY ordinal").fetchall()
    digests = [digest for (digest,) in catalogs]
    named = _named_digests(connection)
    first_named = next((place for place, digest in enumerate(digests) if digest in named), len(digests))
    unused: list[tuple[SqlValue, ...]] = [(digest,) for digest in digests[: max(first_named - 1, 0)]]
    return [("DELETE FROM catalog WHERE digest = ?", unused)] if unused else []


def _named_digests(connection: sqlite3.Connection) -> set[str]:
    changes = connection.execute("SELECT kind, body FROM input WHERE kind = 'CatalogChanged'").fetchall()
    eras = connection.execute("SELECT ordinal, kind, body FROM carried WHERE kind = 'Era'").fetchall()
    inputs = [codec.decode_input(kind, body) for kind, body in changes]
    cells = [carried.cell for carried in codec.decode_cells(eras)]
    return {one.digest for one in (*inputs, *cells) if isinstance(one, CatalogChanged | Era)}
