"""The only way to the store: numbers what is committed, and answers for it.

A commit is never refused for disk trouble: it is then kept in memory under another store id and
written when the disk answers again. The ledger decides nothing about faults and knows no rule.
"""

import asyncio
import sqlite3
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from nodeagent.core.model import Carried
from nodeagent.store import codec, queries
from nodeagent.store.change import AuditRow, Base, CatalogRow, Change, Numbers
from nodeagent.store.consumers import Consumer, Consumers, Numbering
from nodeagent.store.disk.durability import Durability, Limits
from nodeagent.store.disk.opening import FILE_NAME, StoreIdentity
from nodeagent.store.disk.reader import StoreReader
from nodeagent.store.disk.retention import RetentionPolicy, Upkeep
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.records import (
    ClockAnchor,
    Committed,
    Damage,
    StoredEvent,
    StoreId,
    StoreRecovery,
    Transaction,
)

T = TypeVar("T")

PAGE_EVENTS = 1_000


class Ledger:
    """One per process and directory; all calls from one event loop.

    ``carry`` gives the live cells as of everything committed so far; it is called in the loop when
    the disk comes back and memory could not keep all inputs, and where the file is too large for its
    inputs. ``on_durability_change`` is called in the loop when ``degraded`` has changed. ``wall_ns`` is
    CLOCK_REALTIME.
    """

    def __init__(
        self,
        directory: Path,
        machine_id: str,
        *,
        keep: RetentionPolicy | None = None,
        limits: Limits | None = None,
        carry: Callable[[], Sequence[Carried]] | None = None,
        on_durability_change: Callable[[], None] | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.carry = carry
        self.on_durability_change = on_durability_change
        self._wall_ns = wall_ns
        limits = limits or Limits()
        self._last = Numbers()
        self._visible_seq = 0
        self._oldest_seq = 1
        self._engine_now_ns = 0
        self._base_input = 0
        self._damaged_events = 0
        self._consumers = Consumers(())
        self._last_catalog: CatalogRow | None = None
        identity = StoreIdentity(machine_id=machine_id, new_uuid=str(uuid.uuid4()), wall_ns=wall_ns)
        path = directory / FILE_NAME
        self._reader = StoreReader(path, limits.commit_deadline_s)
        self._durability = Durability(
            path,
            identity,
            limits,
            self._reader,
            last=lambda: self._last,
            all_there_is=self._all_there_is,
            changed=self._durability_changed,
        )
        self._upkeep = Upkeep(
            self._durability, keep or RetentionPolicy(), wall_ns, self._trimmed, self._rest_on_new_base
        )
        self._upkeep_task: asyncio.Task[None] | None = None

    async def open(self) -> StoreRecovery:
        """Open and read the last life back, or begin in memory where the disk refuses.

        Raises StoreInUseError if another process has the directory open, and nothing for disk trouble.
        """
        life = await self._durability.open()
        self._upkeep_task = asyncio.create_task(self._upkeep.run(), name="store-upkeep")
        if life is None:
            return StoreRecovery(
                store_id=self.store_id,
                last_seq=0,
                engine_now_ns=0,
                anchor=None,
                cursors={},
                carried=(),
                carried_at_seq=0,
                carried_at_ns=0,
                inputs=(),
                damages=self.damages,
                durable=self.durable,
            )
        self._last = life.state.last
        self._visible_seq = self._last.seq
        self._oldest_seq = life.state.oldest_seq
        self._engine_now_ns = life.state.engine_now_ns
        self._base_input = life.state.base_input
        self._consumers = Consumers(life.consumers)
        self._durability.damages += life.recovery.damages
        return replace(life.recovery, store_id=self.store_id, durable=self.durable)

    async def close(self) -> None:
        """Write what is queued and close; what hangs is left behind within the commit deadline."""
        if self._upkeep_task is not None:
            self._upkeep_task.cancel()
        await self._reader.close()
        await self._durability.close()

    @property
    def store_id(self) -> StoreId:
        return self._durability.store_id

    @property
    def durable(self) -> bool:
        return not self._durability.degraded

    @property
    def degraded(self) -> str:
        """Why commits are not durable; empty while they are."""
        return self._durability.degraded

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What was found damaged and is not reported yet: see ``Transaction.reports_damage``."""
        return tuple(self._durability.damages)

    @property
    def damaged_events(self) -> int:
        """How many damaged rows of the history were left out of what was read since the start."""
        return self._damaged_events

    @property
    def earlier_life_waits(self) -> bool:
        """The disk, unreadable at the start, now shows an earlier life: a new process can continue it."""
        return self._durability.earlier_life_waits

    @property
    def last_seq(self) -> int:
        """The greatest number whose commit was answered."""
        return self._visible_seq

    @property
    def oldest_seq(self) -> int:
        """The lowest number that can surely be read; ``last_seq + 1`` if none can."""
        if self.durable:
            return self._oldest_kept
        events = self._durability.backlog.events
        return events[0][0] if events else self._visible_seq + 1

    @property
    def _oldest_kept(self) -> int:
        """The lowest number that can be read, now or once the disk answers again."""
        return max(self._oldest_seq, self._durability.backlog.history_from)

    @property
    def last_audit(self) -> int:
        """The greatest number in the audit log."""
        return self._last.audit

    @property
    def inputs_since_base(self) -> int:
        """How many inputs a restart would replay: the measure of when to compact."""
        return self._last.input - self._base_input

    @property
    def dropped(self) -> tuple[int, int]:
        """(events, inputs) that memory could not keep while the disk was in trouble, in all."""
        backlog = self._durability.backlog
        return backlog.dropped_events, backlog.dropped_inputs

    async def commit(self, transaction: Transaction) -> Committed:
        """Number the events and write all of it, or keep it in memory; answer which.

        Transactions are written in the order of calls, also when several are under way.
        """
        inputs = [
            (number, stamped.rule_ns, stamped.wall_ns, *codec.encode_input(stamped.input))
            for number, stamped in enumerate(transaction.inputs, self._last.input + 1)
        ]
        events = tuple(
            StoredEvent(seq=seq, wall_ns=wall_ns, event=event)
            for seq, (wall_ns, event) in enumerate(transaction.events, self._last.seq + 1)
        )
        change = Change(
            inputs=inputs,
            events=[(one.seq, one.wall_ns, codec.encode_event(one.event)) for one in events],
            engine_now_ns=transaction.engine_now_ns,
            anchor=transaction.anchor,
            cursors=transaction.cursors,
            reports_damage=transaction.reports_damage,
        )
        if transaction.reports_damage:
            self._durability.damages.clear()
        self._last = replace(
            self._last, input=self._last.input + len(inputs), seq=self._last.seq + len(events)
        )
        self._engine_now_ns = max(self._engine_now_ns, transaction.engine_now_ns)
        last_seq = self._last.seq
        durable = await self._durability.write(change)
        self._visible_seq = max(self._visible_seq, last_seq)
        return Committed(store_id=self.store_id, events=events, last_seq=last_seq, durable=durable)

    async def compact(
        self, carried: Sequence[Carried], engine_now_ns: int, anchor: ClockAnchor | None = None
    ) -> bool:
        """Let a replay begin here: ``carried`` are the live cells after everything committed so far.

        Answers whether it is on the disk; else memory holds it and needs no earlier input.
        """
        self._engine_now_ns = max(self._engine_now_ns, engine_now_ns)
        base = self._base(carried)
        return await self._durability.write(Change(base=base, engine_now_ns=engine_now_ns, anchor=anchor))

    async def read_events(self, after_seq: int, limit: int = PAGE_EVENTS) -> list[StoredEvent]:
        """At most ``limit`` (and at most 1,000) events beyond ``after_seq``, oldest first.

        They begin later than ``after_seq + 1`` if retention has ended there: see ``oldest_seq``. Numbers
        whose rows are damaged are left out. Raises StoreUnreadableError where the disk does not answer: there
        may be events all the same.
        """
        limit = min(limit, PAGE_EVENTS)
        after_seq = max(after_seq, self._durability.backlog.history_from - 1)
        backlog = [row for row in self._durability.backlog.events if row[0] > after_seq]
        disk_until = backlog[0][0] - 1 if backlog else self._visible_seq
        found: list[StoredEvent] = []
        if disk_until > after_seq:
            found, damaged = await self._read(
                lambda connection: queries.read_events(connection, after_seq, disk_until, limit)
            )
            self._damaged_events += damaged
        wanted = [row for row in backlog if row[0] <= self._visible_seq][: limit - len(found)]
        return found + [codec.decode_event(row) for row in wanted]

    async def first_since(self, after_seq: int, until_seq: int, since_ns: int) -> int | None:
        """The first number of (after_seq, until_seq] whose event has this wall time or a later one.

        Of what is on the disk. Raises StoreUnreadableError. Ask for some ten thousand numbers at a time.
        """
        return await self._read(lambda disk: queries.first_since(disk, after_seq, until_seq, since_ns))

    async def last_before(self, after_seq: int, until_seq: int, until_ns: int) -> int | None:
        """The last number of (after_seq, until_seq] with an earlier wall time; see ``first_since``."""
        return await self._read(lambda disk: queries.last_before(disk, after_seq, until_seq, until_ns))

    async def trim(self) -> None:
        """Delete now what retention allows, as happens by itself from time to time."""
        await self._upkeep.trim()

    async def put_catalog(self, digest: str, body: bytes, reason: str) -> bool:
        """Keep a catalog and make it the last good one; whether it is on the disk."""
        row = self._last_catalog = (digest, reason, body)
        return await self._durability.write(Change(catalogs=(row,)))

    async def get_catalog(self, digest: str) -> bytes | None:
        """The catalog with this digest, None if it is not kept; raises StoreUnreadableError."""
        kept = self._durability.backlog.catalogs.get(digest)
        if kept is not None:
            return kept[2]
        return await self._read(lambda connection: queries.read_catalog(connection, digest))

    async def last_good_catalog(self) -> tuple[str, bytes] | None:
        """(digest, body) of the catalog put last; raises StoreUnreadableError."""
        catalogs = self._durability.backlog.catalogs
        if catalogs:
            digest = next(reversed(catalogs))
            return digest, catalogs[digest][2]
        return await self._read(queries.read_last_catalog)

    async def ack(
        self, consumer: str, owner: str, store_id: StoreId, seq: int, *, is_operator: bool = False
    ) -> Consumer:
        """Note that ``consumer`` has taken everything up to ``seq``; returns the consumer as it is now.

        Raises OtherStoreError, BeyondLastError, OtherOwnerError or TooManyConsumersError (all ConsumerError).
        """
        asked = Consumer(name=consumer, owner=owner, seq=seq, acked_wall_ns=self._wall_ns())
        now = Numbering(store_id=self.store_id, last_seq=self._visible_seq, oldest_seq=self.oldest_seq)
        taken, rows = self._consumers.ack(asked, store_id, now, is_operator=is_operator)
        await self._durability.write(Change(consumers=rows))
        return taken

    def consumers(self) -> tuple[Consumer, ...]:
        return self._consumers.all()

    def consumer(self, name: str) -> Consumer | None:
        return self._consumers.get(name)

    async def rewind(self, consumer: str, store_id: StoreId, seq: int) -> tuple[Consumer, bool]:
        """Set a consumer that there is back: (the consumer as it is now, whether that is on the disk).

        Raises OtherStoreError, or BeyondLastError where that would move it on.
        """
        now = Numbering(store_id=self.store_id, last_seq=self._visible_seq, oldest_seq=self._oldest_kept)
        set_back, rows = self._consumers.rewind(consumer, store_id, seq, now)
        return set_back, await self._durability.write(Change(consumers=rows))

    async def delete_consumer(self, name: str) -> None:
        await self._durability.write(Change(consumers=self._consumers.delete(name)))

    async def audit(self, wall_ns: int, who: str, what: str, target: str, result: str) -> bool:
        """Note what was asked of the daemon and what came of it; whether it is on the disk."""
        self._last = replace(self._last, audit=self._last.audit + 1)
        row = (self._last.audit, wall_ns, who, what, target, result)
        return await self._durability.write(Change(audits=(row,)))

    async def read_audit(self, after_number: int = 0, limit: int = PAGE_EVENTS) -> list[AuditRow]:
        """Rows (number, wall_ns, who, what, target, result), oldest first; raises StoreUnreadableError."""
        limit = min(limit, PAGE_EVENTS)
        backlog = [row for row in self._durability.backlog.audits if row[0] > after_number]
        first = backlog[0][0] if backlog else self._last.audit + 1
        rows = await self._read(lambda connection: queries.read_audits(connection, after_number, limit))
        return ([row for row in rows if row[0] < first] + backlog)[:limit]

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._reader.read(query)
        except StoreDamagedError as damage:
            self._durability.leave(f"the file is damaged: {damage}", damage=str(damage))
            raise StoreUnreadableError(str(damage)) from damage

    def _base(self, carried: Sequence[Carried]) -> Base:
        self._base_input = self._last.input
        return Base(
            cells=tuple(codec.encode_cells(carried, self._last.input)),
            number=self._last.input,
            seq=self._last.seq,
            at_ns=self._engine_now_ns,
        )

    def _all_there_is(self) -> Change | None:
        """What memory has of a file that lost it; None while the live cells are not known."""
        if self.carry is None:
            return None
        return Change(
            base=self._base(self.carry()),
            consumers={consumer.name: consumer.row for consumer in self._consumers.all()},
            catalogs=() if self._last_catalog is None else (self._last_catalog,),
        )

    async def _rest_on_new_base(self) -> bool:
        """The live cells are always those after what was given to ``commit`` last: both change together."""
        if self.carry is None or not self.inputs_since_base:
            return False
        return await self.compact(self.carry(), self._engine_now_ns)

    def _trimmed(self, oldest_seq: int) -> None:
        self._oldest_seq = oldest_seq

    def _durability_changed(self) -> None:
        if self.on_durability_change is not None:
            self.on_durability_change()
