"""Which catalog is in force: the tables as they stand on disk if they are sound, else the last good ones.

It loads and remembers; whether a change matters to open conditions is the core's to say.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from nodeagent.core.catalog import Catalog, Settings
from nodeagent.core.model import CatalogChanged, Input, TablesRejected
from nodeagent.store.ledger import Ledger
from nodeagent.tables.canonical import decode_catalog, encode_catalog
from nodeagent.tables.load import TablesError, load_catalog

log = logging.getLogger(__name__)

_REASON_LENGTH = 2000


class NoTables(Exception):
    """There is no sound catalog at all: none on disk and none in the store. str() says what is wrong."""


class Catalogs:
    """``known`` is the engine's own mapping: a catalog is in it before any input names it."""

    def __init__(self, ledger: Ledger, known: dict[str, Catalog]) -> None:
        self._ledger = ledger
        self._known = known
        self.current = Catalog(digest="")

    async def load(self, folders: Sequence[Path], settings: Settings, in_force: str) -> tuple[Input, ...]:
        """The inputs that bring the tables on disk into force. ``in_force`` is the engine's digest, or "".

        Bad tables keep what is in force, else the last good ones, else the shipped folder alone.
        Raises NoTables where nothing is left.
        """
        try:
            loaded = load_catalog(folders, settings)
        except TablesError as refused:
            for problem in refused.problems:
                log.error("tables refused: %s", problem)
            rejected = TablesRejected(reason=str(refused)[:_REASON_LENGTH])
            await self._fall_back(folders, settings, in_force, refused)
            return (*self._change(in_force), rejected)
        for warning in loaded.warnings:
            log.warning("tables: %s", warning)
        await self._take(loaded.catalog, "loaded from " + ", ".join(map(str, folders)))
        return self._change(in_force)

    async def _fall_back(
        self, folders: Sequence[Path], settings: Settings, in_force: str, refused: TablesError
    ) -> None:
        if in_force:
            self.current = self._known[in_force]
            return
        stored = await self._ledger.last_good_catalog()
        if stored is not None:
            await self._take(decode_catalog(stored[1]), "the last good one, taken up again")
            return
        try:
            await self._take(load_catalog(folders[:1], settings).catalog, "shipped; the site's were refused")
        except TablesError:
            raise NoTables(str(refused)) from refused
        log.warning("no tables were ever good on this node: only those of %s are in force", folders[0])

    async def _take(self, catalog: Catalog, reason: str) -> None:
        self._known[catalog.digest] = catalog
        self.current = catalog
        await self._ledger.put_catalog(catalog.digest, encode_catalog(catalog), reason)

    def _change(self, in_force: str) -> tuple[Input, ...]:
        if self.current.digest == in_force:
            return ()
        return (CatalogChanged(digest=self.current.digest),)
