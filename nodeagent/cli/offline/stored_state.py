"""What an earlier daemon left in its store, for a look at the node without one.

The store is read without changing it, also beside a daemon that hangs. Whether what it says still stands, the
engine judges together with what is read of the devices.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nodeagent.config.sections import AgentConfig
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.daemon.rebuild import digests_of, replayed
from nodeagent.replay import store_file
from nodeagent.replay.reading import ReplayError
from nodeagent.store import queries
from nodeagent.store.disk.opening import FILE_NAME, life_of
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.records import ClockAnchor, Cursor
from nodeagent.tables.canonical import decode_catalog


class Unreadable(Exception):
    """A daemon ran here, and what it knew cannot be read: str() says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLife:
    """``engine`` and ``anchor`` are as of the last commit. Up to ``cursors`` kernel lines were read."""

    engine: Engine
    anchor: ClockAnchor | None
    cursors: Mapping[str, Cursor]


def read(
    agent: AgentConfig, catalogs: dict[str, Catalog], stand_in: Callable[[], Catalog]
) -> LastLife | None:
    """None where no daemon ever ran here. ``catalogs`` gets those of its time, and is the engine's own.

    One that the store lost or damaged is replaced by ``stand_in``. Raises Unreadable.
    """
    database = Path(agent.state_dir) / FILE_NAME
    if not _a_daemon_ran(agent):
        return None
    try:
        with store_file.opened(database) as connection:
            recovery = life_of(connection).recovery
            for digest in digests_of(recovery):
                catalogs[digest] = _kept(connection, digest) or replace(stand_in(), digest=digest)
        engine = replayed(recovery, catalogs)
    except ReplayError as error:
        raise Unreadable("; ".join(f"{each.file}: {each.reason}" for each in error.problems)) from error
    except Exception as error:
        # The boundary: damage may show anywhere in what was stored.
        raise Unreadable(f"{database}: damaged: {type(error).__name__}: {error}") from error
    return LastLife(engine=engine, anchor=recovery.anchor, cursors=recovery.cursors)


def _kept(connection: sqlite3.Connection, digest: str) -> Catalog | None:
    """None where it is lost, or not as it was written."""
    with suppress(StoreDamagedError, ValueError):
        kept = queries.read_catalog(connection, digest)
        return None if kept is None else decode_catalog(kept)
    return None


def _a_daemon_ran(agent: AgentConfig) -> bool:
    """Its folder, or a socket that it left. Where that may not be looked at, there is something."""
    try:
        return Path(agent.state_dir).exists() or Path(agent.socket).exists()
    except PermissionError:
        return True
