"""Which catalog is in force: the tables as they stand on disk if they are sound, else the last good ones.

It loads and remembers; whether a change matters to open conditions is the core's to say.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from nodeagent.config.load import ConfigError
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import CatalogChanged, Input, TablesRejected
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger
from nodeagent.tables.cached import load_cached
from nodeagent.tables.canonical import decode_catalog, encode_catalog
from nodeagent.tables.load import Loaded, TablesError
from nodeagent.tables.patterns.templates import uncompiled

log = logging.getLogger(__name__)

_REASON_LENGTH = 2000

KEPT = 4
"""Catalogs in memory, megabytes each: the one in force, its successor, and some that are on their way."""


class NoTables(Exception):
    """There is no sound catalog at all: none on disk and none in the store. str() says what is wrong."""


def why_refused(error: Exception) -> str:
    """Why nothing was loaded, a line for each problem. An unforeseen error is logged with its traceback."""
    if isinstance(error, ConfigError | TablesError):
        return str(error)
    log.error("tables and configuration cannot be loaded", exc_info=error)
    return f"cannot be loaded, by a defect of nodeagent; report it with the files: {error!r}"


def tables_on_disk(folders: Sequence[Path], settings: Settings) -> Catalog:
    """What the folders say now. Raises NoTables where that is not sound."""
    try:
        return load_cached(folders, settings).catalog
    except Exception as error:
        raise NoTables(why_refused(error)) from error


async def last_good(ledger: Ledger) -> Catalog | None:
    """The tables that were loaded last; None where there are none, or none that can be read back."""
    try:
        stored = await ledger.last_good_catalog()
        return None if stored is None else decode_catalog(stored[1])
    except (StoreUnreadableError, StoreDamagedError, ValueError) as error:
        log.error("the last good tables cannot be read back: %s", error)
        return None


async def stand_in(ledger: Ledger, folders: Sequence[Path], settings: Settings) -> Catalog:
    """What judges in the place of a catalog that the store lost: the tables on disk, else the last good ones,
    else the shipped folder alone. Raises NoTables where nothing is left.
    """
    try:
        return tables_on_disk(folders, settings)
    except NoTables as refused:
        log.error("tables refused: %s", refused)
    return await last_good(ledger) or tables_on_disk(folders[:1], settings)


class Catalogs:
    """``known`` is the engine's own mapping: a catalog is in it before any input names it."""

    def __init__(self, ledger: Ledger, known: dict[str, Catalog]) -> None:
        self._ledger = ledger
        self._known = known
        self.current = Catalog(digest="")
        self.refused = ""
        """Why the tables on disk are not in force since the start; empty if they are."""

    async def load(self, folders: Sequence[Path], settings: Settings, in_force: str) -> tuple[Input, ...]:
        """The inputs that bring the tables on disk into force. ``in_force`` is the engine's digest, or "".

        Bad tables keep what is in force, else the last good ones, else the shipped folder alone. Tables with
        a pattern that this version does not compile are not good any more.
        Raises NoTables where nothing is left.
        """
        try:
            loaded = await self.read(folders, settings)
        except Exception as error:  # noqa: BLE001  the boundary of a start: whatever they are, the last good ones are better
            reason = why_refused(error)
            for problem in reason.splitlines():
                log.error("tables refused: %s", problem)
            self.refused = reason
            await self._fall_back(folders, settings, in_force)
            return (*self._change(in_force), self.rejected(reason))
        return await self.take(loaded, folders, in_force)

    async def read(self, folders: Sequence[Path], settings: Settings) -> Loaded:
        """Load the tables on disk. It changes nothing, and the loop runs meanwhile. Raises TablesError."""
        return await asyncio.to_thread(load_cached, folders, settings)

    async def take(self, loaded: Loaded, folders: Sequence[Path], in_force: str) -> tuple[Input, ...]:
        """The inputs that bring it into force in place of ``in_force``."""
        for warning in loaded.warnings:
            log.warning("tables: %s", warning)
        await self._take(loaded.catalog, "loaded from " + ", ".join(map(str, folders)), in_force)
        return self._change(in_force)

    @staticmethod
    def rejected(reason: str) -> TablesRejected:
        """The input that reports tables that were refused; a very long reason is cut."""
        return TablesRejected(reason=reason[:_REASON_LENGTH])

    async def _fall_back(self, folders: Sequence[Path], settings: Settings, in_force: str) -> None:
        kept = self._known[in_force] if in_force else await last_good(self._ledger)
        reason = "no tables of this node were ever accepted"
        if kept is not None:
            refused = uncompiled(kept.patterns)
            if refused is None:
                self.current = kept
                self._remember(kept, in_force)
                return
            reason = f"the last good tables are of an earlier version, {refused}"
        shipped = tables_on_disk(folders[:1], settings)
        await self._take(shipped, "shipped; the site's were refused", in_force)
        log.warning("%s: only those of %s are in force", reason, folders[0])

    async def _take(self, catalog: Catalog, reason: str, in_force: str) -> None:
        encoded = encode_catalog(catalog)
        self._remember(catalog, in_force)
        self.current = catalog
        await self._ledger.put_catalog(catalog.digest, encoded, reason)

    def _remember(self, catalog: Catalog, in_force: str) -> None:
        """As the newest; what only a replay needed is let go of."""
        if in_force in self._known:
            self._known[in_force] = self._known.pop(in_force)
        self._known.pop(catalog.digest, None)
        self._known[catalog.digest] = catalog
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]

    def _change(self, in_force: str) -> tuple[Input, ...]:
        if self.current.digest == in_force:
            return ()
        return (CatalogChanged(digest=self.current.digest),)
