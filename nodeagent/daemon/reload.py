"""Reloads, on SIGHUP and for operators: the tables, and those keys of the configuration that a reload
applies.

One reload runs at a time. An error anywhere refuses all of it. What is refused stays visible as a condition
of the node until a good reload or start: a log line is gone by the time somebody looks. Keys that changed
and that only a start applies are named.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import fields

from nodeagent.api.control.tables import Reloaded, TablesRefused
from nodeagent.config import last
from nodeagent.config.config import Config
from nodeagent.config.load import load_config
from nodeagent.core.model import NODE, Assertion, Signal, View
from nodeagent.daemon import systemd
from nodeagent.daemon.catalogs import Catalogs, why_refused
from nodeagent.daemon.pump import Pump
from nodeagent.daemon.sources.configured import expected_chips
from nodeagent.daemon.sources.supervisor import SourceSupervisor
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
        sources: list[SourceSupervisor],
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
        """Reload each time that it is set. Errors are reported and logged: no caller waits for an answer."""
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
            wrong = CONFIGURATION
            try:
                config = load_config(self._config_path, os.environ)
                wrong = TABLES
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
        found = {wrong: reason} if wrong == CONFIGURATION else {CONFIGURATION: "", wrong: reason}
        conditions = standing(self._feed.current.view, found)
        await self._pump.ask(Catalogs.rejected(reason), *conditions)

    async def _take(self, config: Config, loaded: Loaded) -> None:
        inputs = await self._catalogs.take(loaded, table_folders(config), self._catalogs.current.digest)
        # Before the mode of resets is in force that the hooks around them were written for.
        self._on_config(config)
        in_force = {CONFIGURATION: "", TABLES: ""}
        conditions = standing(self._feed.current.view, in_force)
        await self._pump.ask(*inputs, *conditions)
        for source in self._sources:
            source.reload(loaded.catalog)
            await source.expect(expected_chips(config.drivers[source.name]))


def table_folders(config: Config) -> list[Path]:
    """The folders of the tables; later ones win."""
    return [Path(folder) for folder in config.agent.tables]


CONFIGURATION: Final = "configuration_rejected"
TABLES: Final = "tables_rejected"
_SOURCE: Final = "agent"
_REASON: Final = "reason"
_REASON_LENGTH: Final = 2000


def standing(view: View, refused: Mapping[str, str]) -> tuple[Signal, ...]:
    """The signals that make the open conditions say why each code is refused; "" where it is in force."""
    return tuple(signal for code, reason in refused.items() for signal in _signals(view, code, reason))


def _signals(view: View, code: str, reason: str) -> Iterator[Signal]:
    reason = "; ".join(reason.splitlines())[:_REASON_LENGTH]
    raised = [each for each in view.conditions if (each.source, each.code) == (_SOURCE, code)]
    if reason and any(each.backing.evidence.get(_REASON) == reason for each in raised):
        return
    if raised:
        yield Signal(source=_SOURCE, device=NODE, code=code, assertion=Assertion.RECOVER)
    if reason:
        yield Signal(
            source=_SOURCE, device=NODE, code=code, assertion=Assertion.OCCUR, evidence={_REASON: reason}
        )


_SECTIONS: Final = ("agent", "metrics", "grpc", "reset", "store", "jobs", "nvrx")
_AT_A_RELOAD: Final = frozenset(
    f"agent.{key}"
    for key in (
        "mode",
        "tables",
        "request_tolerance",
        "self_healing",
        "max_isolated_chips",
        "stale_after",
        "once_hold",
        "unknown_level",
    )
)
_EXPECTED_CHIPS: Final = ".expected_chips"
"""The end of this key of each driver that has it."""

_OF_RESETS: Final = "reset."
_OF_JOBS: Final = "jobs."
_WHERE_JOBS_COME: Final = ("jobs.enabled", "jobs.socket")
_WHERE_RESETS_RUN: Final = "reset.run_dir"


def left_for_a_start(started_with: Config, now: Config) -> tuple[str, ...]:
    """One sentence for each key that has changed and that a reload does not take."""
    return tuple(
        f"{key} changed: restart nodeagent to apply it"
        for key in _changed(started_with, now)
        if not _is_taken_at_a_reload(key)
    )


def _is_taken_at_a_reload(key: str) -> bool:
    if key.startswith(_OF_RESETS):
        return key != _WHERE_RESETS_RUN
    if key.startswith(_OF_JOBS):
        return key not in _WHERE_JOBS_COME
    return key in _AT_A_RELOAD or key.endswith(_EXPECTED_CHIPS)


def _changed(before: Config, after: Config) -> Iterator[str]:
    for section in _SECTIONS:
        yield from _changed_in(section, getattr(before, section), getattr(after, section))
    for name in sorted(after.drivers):
        yield from _changed_in(f"drivers.{name}", before.drivers[name], after.drivers[name])


def _changed_in(section: str, before: Struct, after: Struct) -> Iterator[str]:
    for field in fields(after):
        if getattr(before, field.name) != getattr(after, field.name):
            yield f"{section}.{field.encode_name}"
