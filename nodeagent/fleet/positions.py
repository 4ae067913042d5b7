"""How far each node was followed, in a file: after a restart the follower continues there and loses nothing.

A position is written shortly after the effect of its event is done, many nodes in one transaction. So effects
of the last moment before a crash are done again. The file belongs to one process at a time.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from nodeagent.client import Position

WRITE_EVERY_S: Final = 0.5
_APPLICATION_ID: Final = 0x6E6F6465
"""Marks the file as one of nodeagent (SQLite's PRAGMA application_id)."""

_log = logging.getLogger(__name__)


class PositionsError(Exception):
    """The file cannot be used; the text names it and what to do."""


class Positions:
    """Open with ``open``; ``run`` writes until it is cancelled, ``close`` writes what is left."""

    def __init__(self, path: Path, connection: sqlite3.Connection, kept: dict[str, Position]) -> None:
        self._path = path
        self._connection = connection
        self._kept = kept
        self._unwritten: dict[str, Position] = {}
        self._problem = ""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises ``PositionsError``."""
        connection = None
        try:
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            return cls(path, connection, _prepared(connection))
        except (sqlite3.Error, ValueError) as error:
            if connection is not None:
                connection.close()
            raise PositionsError(_refusal(path, error)) from error

    def of(self, node: str) -> Position | None:
        return self._unwritten.get(node) or self._kept.get(node)

    def note(self, node: str, position: Position) -> None:
        """Everything up to there is done; it is written soon."""
        self._unwritten[node] = position

    async def run(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            if fresh := dict(self._unwritten):
                self._settle(fresh, await asyncio.to_thread(self._commit, fresh))

    def write(self) -> None:
        """Writes what is not on the disk yet. Where that fails it is kept for the next time, and reported
        once.
        """
        fresh = dict(self._unwritten)
        self._settle(fresh, self._commit(fresh))

    def close(self) -> None:
        self.write()
        self._connection.close()

    def _commit(self, fresh: Mapping[str, Position]) -> str:
        """Why it failed, "" where it did not."""
        try:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?)",
                [(node, str(position)) for node, position in fresh.items()],
            )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            return str(error)
        return ""

    def _settle(self, fresh: Mapping[str, Position], problem: str) -> None:
        """Runs in the loop, where positions are noted too: a newer one is kept for the next time."""
        if problem and problem != self._problem:
            _log.error("%s: positions cannot be written, events may come twice: %s", self._path, problem)
        self._problem = problem
        if problem:
            return
        self._kept.update(fresh)
        for node, position in fresh.items():
            if self._unwritten[node] is position:
                del self._unwritten[node]


def _prepared(connection: sqlite3.Connection) -> dict[str, Position]:
    """The file with its one table, locked for this process. Raises ``sqlite3.Error``, ``ValueError``."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and owner != _APPLICATION_ID:
        raise ValueError("it is a database of another program")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS positions (node TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID"
    )
    connection.execute("COMMIT")
    connection.execute("PRAGMA synchronous = FULL")
    rows = connection.execute("SELECT node, position FROM positions").fetchall()
    return {node: Position.parse(text) for node, text in rows}


def _refusal(path: Path, error: Exception) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return f"{path}: another process follows with it; give each its own file"
    if not path.parent.is_dir():
        return f"{path}: there is no folder {path.parent}; make it"
    return f"{path}: cannot be used for positions: {error}; name another file, or remove it"
