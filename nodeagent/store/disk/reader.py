"""A connection of their own for the outlets, on a thread that may hang in the disk.

It never writes, and knows no query: the caller brings one (``queries``).
"""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nodeagent.store.disk.thread import AbandonedError, DiskThread
from nodeagent.store.disk.writer import as_ours, is_trouble
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError

T = TypeVar("T")


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing store for reading, also on a read-only filesystem; raise sqlite3.Error.

    A file with a non-empty log needs the log's index, which SQLite can read but not make
    there; without a log the file is whole and may be read as it lies.
    """
    try:
        return _connect(path, "mode=rw")
    except sqlite3.Error as error:
        if not is_trouble(error):
            raise
        log = path.with_name(path.name + "-wal")
        whole = not log.exists() or log.stat().st_size == 0
        return _connect(path, "immutable=1" if whole else "mode=ro")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT only FROM state").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return as_ours(connection)


class _ReadConnection:
    """A connection that is opened by the first query, on the thread that queries."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = connect(self._path)
        return query(self._connection)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class StoreReader:
    """A thread and a connection for reading; both are left behind when a read hangs or fails."""

    def __init__(self, path: Path, deadline_s: float) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._open: tuple[DiskThread, _ReadConnection] | None = None
        self._left: DiskThread | None = None
        self._may_read = asyncio.Event()
        self._may_read.set()

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``query``; raise StoreUnreadableError (disk trouble) or StoreDamagedError."""
        try:
            return await self._read(query)
        except AbandonedError:
            # Reset under way: the file may be another one now.
            pass
        try:
            return await self._read(query)
        except AbandonedError as error:
            raise StoreUnreadableError(str(error)) from error

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        thread, connection = self._open or await self._start()
        future = thread.run(lambda: connection.query(query))
        done, _ = await asyncio.wait((future,), timeout=self._deadline_s)
        if not done:
            self.reset()
            raise StoreUnreadableError(f"the disk did not answer a read within {self._deadline_s:g} s")
        try:
            return future.result()
        except (sqlite3.Error, OSError) as error:
            self.reset()
            if not is_trouble(error):
                raise StoreDamagedError(str(error)) from error
            raise StoreUnreadableError(f"the disk refuses reads: {error}") from error

    async def pause(self) -> bool:
        """Close the file and answer no read until ``resume``: they wait. Whether it is closed by now."""
        self._may_read.clear()
        self.reset()
        return self._left is None or await self._has_ended(self._left)

    def resume(self) -> None:
        self._may_read.set()

    def reset(self) -> None:
        """Leave the connection and its thread behind; the next read opens another."""
        if self._open is not None:
            self._left = self._open[0]
            self._left.abandon()
            self._open = None

    async def close(self) -> None:
        if self._open is not None:
            thread, self._open = self._open[0], None
            await asyncio.wait((thread.finish(),), timeout=self._deadline_s)

    async def _start(self) -> tuple[DiskThread, _ReadConnection]:
        if self._left is not None and not await self._has_ended(self._left):
            raise StoreUnreadableError("an earlier read still hangs in the disk")
        if not self._may_read.is_set():
            await self._wait_until_resumed()
        if self._open is not None:
            return self._open
        connection = _ReadConnection(self._path)
        self._open = (DiskThread("store-reader", connection.close), connection)
        return self._open

    async def _wait_until_resumed(self) -> None:
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._may_read.wait()
        except TimeoutError:
            raise StoreUnreadableError("the file is being opened again after disk trouble") from None

    async def _has_ended(self, thread: DiskThread) -> bool:
        if not thread.finished:
            await asyncio.wait((thread.ended,), timeout=self._deadline_s)
        return thread.finished
