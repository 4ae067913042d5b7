"""Reloads, on SIGHUP and for operators: the tables and those keys of the configuration that decide.

One at a time. What is wrong anywhere refuses all of it; only a reload that was meant is reported as rejected.
Keys that have changed and that only a start takes are named.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from nodeagent.api.control.tables import Reloaded, TablesRefused
from nodeagent.config import last
from nodeagent.config.config import Config
from nodeagent.config.load import load_config
from nodeagent.daemon import refusals, systemd
from nodeagent.daemon.catalogs import Catalogs, why_refused
from nodeagent.daemon.pump import Pump
from nodeagent.daemon.restart_keys import left_for_a_start
from nodeagent.daemon.sources.configured import expected_chips
from nodeagent.daemon.sources.supervisor import Supervisor
from nodeagent.store.disk.thread import within
from nodeagent.store.event_feed import EventFeed
from nodeagent.tables.load import Loaded

log = logging.getLogger(__name__)

KEEP_LIMIT_S = 5.0


class Reloading:
    """``config`` is that of the start, ``config_path`` None: the default file is read again. ``on_config`` is
    called with what it says.
    """

    def __init__(
        self,
        config: Config,
        config_path: Path | None,
        catalogs: Catalogs,
        pump: Pump,
        feed: EventFeed,
        sources: list[Supervisor],
        on_config: Callable[[Config], None],
    ) -> None:
        self._started_with = config
        self._config_path = config_path
        self._catalogs = catalogs
        self._pump = pump
        self._feed = feed
        self._sources = sources
        self._on_config = on_config
        self._one_at_a_time = asyncio.Lock()

    async def on(self, demand: asyncio.Event) -> None:
        """Each time that is set. What is wrong was reported and logged: nobody waits for an answer."""
        while True:
            await demand.wait()
            demand.clear()
            systemd.reloading()
            try:
                await self.reload(dry_run=False)
            except TablesRefused:
                log.warning("the tables in force stay in force")
            except Exception:
                log.exception("a reload failed on its way; reload again, or restart nodeagent")
            systemd.ready()

    async def reload(self, dry_run: bool) -> Reloaded:
        """Returns once the tables are in force, or, in a dry run, when it is known what they would change.

        Raises TablesRefused; then nothing was changed.
        """
        async with self._one_at_a_time:
            wrong = refusals.CONFIGURATION
            try:
                config = load_config(self._config_path, os.environ)
                wrong = refusals.TABLES
                loaded = await self._catalogs.read(table_folders(config), config.settings())
                preview = self._pump.preview(loaded.catalog)
            except Exception as error:
                # Whatever it meets, all goes on as it was.
                reason = why_refused(error)
                if not dry_run:
                    await self._reject(wrong, reason)
                raise TablesRefused(reason) from error
            left = left_for_a_start(self._started_with, config)
            idle = config.without_effect()
            if not dry_run:
                await self._take(config, loaded)
                for each in (*idle, *left):
                    log.warning("%s", each)
                if not left:
                    await self.keep(config)
            warnings = (*loaded.warnings, *idle, *left)
            return Reloaded(digest=loaded.catalog.digest, warnings=warnings, preview=preview)

    async def keep(self, config: Config) -> None:
        """All of it is in force: a start at which the file is broken goes on with it.

        A disk that fails or hangs costs that copy alone.
        """
        try:
            await within(
                KEEP_LIMIT_S,
                "configuration",
                lambda: last.keep(self._config_path, os.environ, config),
            )
        except OSError as error:
            log.warning("the configuration cannot be copied for a later start: %s", error)

    async def _reject(self, wrong: str, reason: str) -> None:
        for line in reason.splitlines():
            log.error("reload refused: %s", line)
        found = (
            {wrong: reason}
            if wrong == refusals.CONFIGURATION
            else {refusals.CONFIGURATION: "", wrong: reason}
        )
        conditions = refusals.standing(self._feed.current.view, found)
        await self._pump.ask(Catalogs.rejected(reason), *conditions)

    async def _take(self, config: Config, loaded: Loaded) -> None:
        inputs = await self._catalogs.take(loaded, table_folders(config), self._catalogs.current.digest)
        # Before the mode of resets is in force that the hooks around them were written for.
        self._on_config(config)
        in_force = {refusals.CONFIGURATION: "", refusals.TABLES: ""}
        conditions = refusals.standing(self._feed.current.view, in_force)
        await self._pump.ask(*inputs, *conditions)
        for source in self._sources:
            source.reload(loaded.catalog)
            await source.expect(expected_chips(config.drivers[source.name]))


def table_folders(config: Config) -> list[Path]:
    """The folders of the tables; later ones win."""
    return [Path(folder) for folder in config.agent.tables]
