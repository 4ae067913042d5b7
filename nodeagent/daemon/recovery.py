"""From the store that earlier lives left to a pump that has begun: replayed, and judged by today's tables.

Nothing is observed or served yet.
"""

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nodeagent.config.config import Config
from nodeagent.config.reset import VOLATILE, file_system_of
from nodeagent.core.model import AGENT, NODE, DeviceSeen, Kind, Signal
from nodeagent.daemon import reload, systemd
from nodeagent.daemon.catalogs import Catalogs, stand_in
from nodeagent.daemon.clock import Clock, carry_on
from nodeagent.daemon.pump import Pump
from nodeagent.daemon.rebuild import RebuildResult, load_catalogs, rebuild
from nodeagent.daemon.reload import table_folders
from nodeagent.daemon.resets.exchange import resets_recorded
from nodeagent.daemon.sources import configured
from nodeagent.daemon.sources.translate import store_damaged
from nodeagent.daemon.systemd import boot_id, machine_id
from nodeagent.store.disk.retention import RetentionPolicy
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Cursor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredDaemon:
    """What the rest of the daemon works with. ``last_seq`` is the last number of the earlier lives, and
    ``cursors`` is how far their sources had read; a ``volatile`` store is lost at each reboot.
    """

    ledger: Ledger
    volatile: bool
    clock: Clock
    catalogs: Catalogs
    feed: EventFeed
    pump: Pump
    cursors: Mapping[str, Cursor]
    last_seq: int


async def recover(config: Config, refused: str, resources: contextlib.AsyncExitStack) -> RecoveredDaemon:
    """``refused`` is why the configuration on disk is not in force; the open store is put on ``resources``.

    Raises StoreInUseError, and NoTables where there is nothing to judge by.
    """
    state_dir = Path(config.agent.state_dir)
    keep = RetentionPolicy(retention_ns=config.store.retention_ns, max_size=config.store.max_size_bytes)
    ledger = Ledger(state_dir, machine_id(), keep=keep)
    recovery = await ledger.open()
    resources.push_async_callback(ledger.close)
    volatile = _is_volatile(state_dir)

    folders = table_folders(config)
    clock = carry_on(recovery.anchor, boot_id())
    known = await load_catalogs(ledger, recovery, lambda: stand_in(ledger, folders, config.settings()))
    rebuilt = await rebuild(ledger, recovery, known)
    ledger.carry = rebuilt.engine.carry
    catalogs = Catalogs(ledger, known)
    tables = await catalogs.load(folders, config.settings(), rebuilt.engine.digest)

    feed = EventFeed()
    pump = Pump(rebuilt.engine, ledger, feed, clock, systemd.watchdog)
    if rebuilt.damages:
        # What was put back is on the disk before the damage counts as reported.
        await pump.compact()
    view = rebuilt.engine.view()
    refusals_now = {reload.CONFIGURATION: refused, reload.TABLES: catalogs.refused}
    await pump.begin(
        rebuilt.differences,
        (
            configured.started(config, clock),
            _node(config),
            *configured.switched_off(config, view),
            *tables,
            await resets_recorded(config.record_dir, clock.rule_ns()),
            *reload.standing(view, refusals_now),
            *_damages(rebuilt),
        ),
        reported=rebuilt.damages,
    )
    return RecoveredDaemon(
        ledger=ledger,
        volatile=volatile,
        clock=clock,
        catalogs=catalogs,
        feed=feed,
        pump=pump,
        cursors=recovery.cursors,
        last_seq=recovery.last_seq,
    )


def _is_volatile(state_dir: Path) -> bool:
    kind = file_system_of(state_dir)
    if kind in VOLATILE:
        log.warning(
            "agent.state_dir %s lies on %s: isolations, counts and history are lost at each reboot",
            state_dir,
            kind,
        )
    return kind in VOLATILE


def _node(config: Config) -> DeviceSeen:
    """The node itself, which the daemon represents."""
    return DeviceSeen(
        source=AGENT,
        device=NODE,
        kind=Kind.NODE,
        vendor="",
        identity=machine_id(),
        attributes={"hostname": config.agent.name()},
    )


def _damages(rebuilt: RebuildResult) -> list[Signal]:
    restored = [f"{cell.id}" for cell in rebuilt.restored]
    return [store_damaged(damage, restored) for damage in rebuilt.damages]
