"""Whether commits reach the disk, and what to do while they do not.

    durable ──a write fails or exceeds its deadline──> in memory (a new epoch, a bounded backlog)
       ^                                                     │ the failed writer can reach the disk no more
       └── the backlog is on the disk, with the epoch <── rejoining (reopen, read back, write what is missing)

A write whose outcome is unknown may still reach the disk. So no other connection is opened before the thread
that made it is finished, and then the disk is asked which numbers it has. It gives no numbers itself.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from nodeagent.store.change import Change, Numbers, WriteBacklog
from nodeagent.store.disk.durability_state import DurabilityState, DurabilityTrigger, after
from nodeagent.store.disk.opening import Ours, StoredLife, StoreIdentity, open_again, open_life, read_life
from nodeagent.store.disk.reader import StoreReader
from nodeagent.store.disk.writer import Database, ReservedSpace, Writer
from nodeagent.store.errors import NewerSchemaError, StoreDamagedError, StoreInUseError, UnreadLifeError
from nodeagent.store.queries import StateRow
from nodeagent.store.records import Damage, StoreId

T = TypeVar("T")
_log = logging.getLogger(__name__)
LONGEST_RETRY_S = 30.0
STEADY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in seconds, sizes in rows or bytes."""

    commit_deadline_s: float = 2.0
    open_deadline_s: float = 10.0
    retry_s: float = 0.5
    backlog_events: int = 10_000
    backlog_inputs: int = 20_000
    reserved_size: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Pending:
    change: Change
    durable: "asyncio.Future[bool]"
    late: asyncio.TimerHandle


class Durability:
    """Owns the writer, the backlog and the epoch. ``last`` and ``all_there_is`` are as in ``WriteBack``."""

    def __init__(
        self,
        path: Path,
        identity: StoreIdentity,
        limits: Limits,
        reader: StoreReader,
        last: Callable[[], Numbers],
        all_there_is: Callable[[], Change | None],
        changed: Callable[[], None],
    ) -> None:
        self.store_id = StoreId(uuid=identity.new_uuid, epoch=0)
        self.state = DurabilityState.OPENING
        self.degraded = ""
        """Why commits are not durable, "" while they are."""
        self.backlog = WriteBacklog(event_cap=limits.backlog_events, input_cap=limits.backlog_inputs)
        self.path = path
        directory = path.parent
        self.reserved_space = ReservedSpace(directory / "ballast", limits.reserved_size)
        self._identity = identity
        self._limits = limits
        self._changed = changed
        self.space = Space()
        self._lock = DirectoryLock(directory)
        self._writer: Writer | None = None
        self._pending: deque[_Pending] = deque()
        self._reader = reader
        self._left: Writer | None = None
        self.damages: list[Damage] = []
        """Found since the start, and not reported yet."""
        self._write_back = WriteBack(identity, self._lock, self.backlog, self.damages, last, all_there_is)
        self._rejoining: asyncio.Task[None] | None = None
        self._retry = RetryPause(limits.retry_s)

    @property
    def earlier_life_waits(self) -> bool:
        """The disk, unreadable at the start, now shows an earlier life: a new process can continue it."""
        return self.state is DurabilityState.RESTART_NEEDED

    @property
    def _is_unread(self) -> bool:
        return self.state is DurabilityState.UNREAD

    def _take(self, trigger: DurabilityTrigger) -> None:
        self.state = after(self.state, trigger)

    async def open(self) -> StoredLife | None:
        """Open the file, or begin in memory; None if nothing of the last life could be read.

        Raises StoreInUseError, and nothing for disk trouble.
        """
        writer = self._writer = self._new_writer()
        opening = writer.run(lambda: self._take_and_open(writer.database))
        done, _ = await asyncio.wait((opening,), timeout=self._limits.open_deadline_s)
        if not done:
            trouble = f"the disk did not answer within {self._limits.open_deadline_s:g} s at the start"
            self._degrade(trouble, DurabilityTrigger.UNREADABLE)
            return None
        try:
            life, trouble = opening.result()
        except StoreInUseError:
            writer.abandon()
            raise
        if life is not None:
            self.store_id = life.state.store_id
            self._write_back.note(life.state.last)
        if not trouble:
            self._take(DurabilityTrigger.OPENED)
        elif life is not None:
            self._degrade(trouble)
        else:
            self._degrade(trouble, DurabilityTrigger.UNREADABLE)
        return life

    def _take_and_open(self, database: Database) -> tuple[StoredLife | None, str]:
        """On the thread: (the life, what is wrong with the disk)."""
        trouble = ""
        try:
            self._lock.take()
            return open_life(database, self._identity), ""
        except StoreInUseError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a start: the daemon begins
            trouble = _text(error)
            database.close()
        if not self.path.exists():
            return None, trouble
        try:
            return read_life(self.path, self._identity.begin()), trouble
        except Exception as error:  # noqa: BLE001 - as above
            _log.error("store: nothing could be read from %s: %s", self.path, _text(error))
            self.damages.append(Damage(why=trouble, lost=("everything",), is_whole=False))
            return None, trouble

    async def write(self, change: Change) -> bool:
        """Write a change in the order of calls; whether it is on the disk, else it is in the backlog."""
        if self._writer is None:
            self.backlog.add(change)
            return False
        loop = asyncio.get_running_loop()
        durable: asyncio.Future[bool] = loop.create_future()
        late = loop.call_later(self._limits.commit_deadline_s, self._late)
        pending = _Pending(change, durable, late)
        self._pending.append(pending)
        self._writer.write(change).add_done_callback(partial(self._written, pending))
        return await asyncio.shield(durable)

    async def on_disk(self, call: Callable[[Database], T]) -> T | None:
        """Run ``call`` between commits; None, and no call, while degraded. Raises what it raises."""
        writer = self._writer
        return None if writer is None else await writer.run(lambda: call(writer.database))

    def leave(self, reason: str, damage: str = "") -> None:
        """Write to this file no more: it is gone, or a read found ``damage``, which rejoining repairs."""
        self._write_back.damage = damage or self._write_back.damage
        if not self.degraded:
            self._degrade(reason)

    async def close(self) -> None:
        """Finish what is queued, within the deadline; what hangs is left behind."""
        self._take(DurabilityTrigger.CLOSED)
        if self._rejoining is not None:
            self._rejoining.cancel()
        if self._writer is not None:
            self._left, self._writer = self._writer, None
            await asyncio.wait((self._left.finish(),), timeout=self._limits.commit_deadline_s)
        if self._left is not None and not self._left.finished:
            # The process keeps the lock while a thread of it may still write.
            self._left.abandon()
            return
        self._lock.give()

    def _written(self, pending: _Pending, written: "asyncio.Future[None]") -> None:
        error = written.exception()
        if not self._pending or self._pending[0] is not pending:
            # Given up on before the disk answered: it is in the backlog.
            return
        if error is not None:
            self._degrade(f"a commit failed: {error}")
            return
        if self._writer is not None:
            self.space.note(self._writer.database)
        self._pending.popleft()
        self._write_back.note(pending.change.last)
        pending.late.cancel()
        if not pending.durable.done():
            pending.durable.set_result(True)

    def _late(self) -> None:
        self._degrade(f"a commit did not end within {self._limits.commit_deadline_s:g} s")

    def _degrade(self, reason: str, trigger: DurabilityTrigger = DurabilityTrigger.FAILED) -> None:
        """Begin an in-memory epoch: what is pending is numbered in it, whatever becomes of it on the disk."""
        self._take(trigger)
        unix_ms = self._identity.wall_ns() // 1_000_000
        self.store_id = replace(self.store_id, epoch=max(self.store_id.epoch + 2, unix_ms))
        self.degraded = reason
        _log.critical("store: not durable (%s): keeping events in memory, store id %s", reason, self.store_id)
        if self._writer is not None:
            self._leave(self._writer)
        while self._pending:
            one = self._pending.popleft()
            one.late.cancel()
            self.backlog.add(one.change)
            if not one.durable.done():
                one.durable.set_result(False)
        if self.state is DurabilityState.CLOSED:
            return
        loop = asyncio.get_running_loop()
        self._retry.failed(loop.time())
        self._rejoining = loop.create_task(self._rejoin(), name="store-rejoin")
        loop.call_soon(self._changed)

    def _leave(self, writer: Writer) -> None:
        """Stop using a writer; until it is finished nothing else may touch the file."""
        writer.abandon()
        self._left, self._writer = writer, None

    async def _rejoin(self) -> None:
        while True:
            await asyncio.sleep(self._retry.pause_s)
            if self._left is not None and not self._left.finished:
                continue
            if not await self._reader.pause():
                continue
            self._left = writer = self._new_writer()
            try:
                await self._write_back.run(writer, self.store_id, unread=self._is_unread)
            except UnreadLifeError as unread:
                writer.abandon()
                self._reader.resume()
                self._take(DurabilityTrigger.EARLIER_LIFE)
                self.degraded = f"{unread}: restart to load it"
                _log.critical("store: %s", self.degraded)
                self._changed()
                return
            except Exception as error:  # noqa: BLE001 - the task's boundary: any trouble is tried again later
                writer.abandon()
                self._retry.grow()
                _log.warning(
                    "store: still not durable, next try in %g s: %s", self._retry.pause_s, _text(error)
                )
                self._reader.resume()
            else:
                # No await between the last write and this one: what is taken from here on waits behind it.
                self._left, self._writer = None, writer
                if await self.write(Change(store_id=self.store_id)):
                    self._be_durable()
                return

    def _be_durable(self) -> None:
        self._reader.resume()
        self._take(DurabilityTrigger.REJOINED)
        self._write_back.is_bare = False
        self._rejoining = None
        self._retry.succeeded(asyncio.get_running_loop().time())
        self.degraded = ""
        _log.warning("store: durable again as %s", self.store_id)
        self._changed()

    def _new_writer(self) -> Writer:
        return Writer(Database(self.path, self.reserved_space))


_FORESEEN = (sqlite3.Error, OSError, StoreDamagedError, StoreInUseError, NewerSchemaError)


def _text(error: Exception) -> str:
    """The error as a text; an unforeseen one is logged with its traceback."""
    if isinstance(error, _FORESEEN):
        return str(error)
    _log.error("store: a defect of nodeagent; please report it", exc_info=error)
    return repr(error)


class Space:
    """When the upkeep has to make space: ``due`` is set where the disk was full (``is_short``), or where more
    than ``max_size`` bytes are in use.
    """

    def __init__(self) -> None:
        self.max_size = sys.maxsize
        self.due = asyncio.Event()
        self.is_short = False

    def note(self, database: Database) -> None:
        """After each commit."""
        if database.space_was_short:
            database.space_was_short = False
            self.is_short = True
        if self.is_short or database.used_size > self.max_size:
            self.due.set()


class RetryPause:
    """How long to wait before the disk is tried again. It doubles, also for a disk that fails again soon
    after it worked; after a steady while it begins at ``first_s``. ``now_s`` is a monotonic clock.
    """

    def __init__(self, first_s: float) -> None:
        self.pause_s = first_s
        self._first_s = first_s
        self._durable_since_s = float("-inf")

    def failed(self, now_s: float) -> None:
        """The disk fails, after it worked until now."""
        if now_s - self._durable_since_s > STEADY_S:
            self.pause_s = self._first_s

    def succeeded(self, now_s: float) -> None:
        self._durable_since_s = now_s
        self.grow()

    def grow(self) -> None:
        self.pause_s = min(2 * self.pause_s, LONGEST_RETRY_S)


class DirectoryLock:
    """Held for as long as any thread of this process may write to the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None

    def take(self) -> None:
        """Make the directory if need be; raise StoreInUseError if another process holds it, else OSError."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        if self._fd is not None:
            if os.path.samestat(os.fstat(self._fd), self._directory.stat()):
                return
            # The directory that was locked has been removed and is another one now.
            self.give()
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise StoreInUseError(f"{self._directory} is in use by another nodeagent") from error
        except OSError:
            os.close(fd)
            raise
        self._fd = fd

    def give(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class WriteBack:
    """``last`` gives the greatest numbers given so far, ``all_there_is`` what memory has of a file that lost
    it. What is found damaged is added to ``damages``.
    """

    def __init__(
        self,
        identity: StoreIdentity,
        lock: DirectoryLock,
        backlog: WriteBacklog,
        damages: list[Damage],
        last: Callable[[], Numbers],
        all_there_is: Callable[[], Change | None],
    ) -> None:
        self.damage = ""
        """What a read has found wrong with the file, "" if nothing."""
        self.is_bare = False
        """Whether the file lacks what memory has of it, as one that was repaired or made again does."""
        self._identity = identity
        self._lock = lock
        self._backlog = backlog
        self._damages = damages
        self._last = last
        self._all_there_is = all_there_is
        self._on_disk = Numbers()
        """What the disk has reported to hold."""

    def note(self, on_disk: Numbers) -> None:
        """The disk has reported that it holds these."""
        self._on_disk = self._on_disk.or_later(on_disk)

    async def run(self, writer: Writer, store_id: StoreId, *, unread: bool) -> None:
        """Write the backlog until nothing was added meanwhile; between that and the return nothing waits.

        Until then it is stored under an epoch that no reader has seen, the next one. After a crash amid it
        the disk lacks numbers that were published under ours, and would give them to other events.
        ``unread``: the start could not read the file. Raises as ``open_again`` and the writer.
        """
        unseen = replace(store_id, epoch=store_id.epoch + 1)
        ours = Ours(uuid=store_id.uuid, last_seq=self._last().seq, unread=unread, damage=self.damage)
        state, damage = await writer.run(lambda: self._take_and_reopen(writer.database, ours))
        self._look_at(state.last, damage)
        on_disk = state.last
        is_bare = self.is_bare
        while True:
            last = self._last()
            if is_bare or self._backlog.needs_base(on_disk, last.input):
                is_bare = False
                whole = self._all_there_is()
                if whole is None:
                    raise StoreDamagedError("inputs were lost and no state is at hand to begin a replay from")
                self._backlog.add(whole)
            additions = self._backlog.additions
            change = self._backlog.missing(on_disk, unseen, last.seq)
            await writer.write(change)
            on_disk = self._on_disk = last
            self._backlog.forget(change, on_disk)
            if self._backlog.additions == additions:
                return

    def _look_at(self, found: Numbers, damage: Damage | None) -> None:
        """What of the file is lost, once: a next try finds it as this one leaves it."""
        lost = _lost(self._on_disk, found)
        if damage is not None:
            # What memory holds of the live state is whole.
            self._damages.append(replace(damage, is_whole=True, doubtful=()))
        elif lost:
            self._damages.append(Damage(why="its files were removed or replaced while in use", lost=lost))
        self.is_bare = self.is_bare or damage is not None or found != found.or_later(self._on_disk)
        self._on_disk, self.damage = found, ""

    def _take_and_reopen(self, database: Database, ours: Ours) -> tuple[StateRow, Damage | None]:
        self._lock.take()
        return open_again(database, self._identity, ours)


def _lost(known: Numbers, found: Numbers) -> tuple[str, ...]:
    """What was on the disk and memory cannot write again, as text."""
    lines = (
        (found.seq, known.seq, "events {} to {} of the history"),
        (found.audit, known.audit, "entries {} to {} of the audit log"),
    )
    return tuple(text.format(there + 1, last) for there, last, text in lines if there < last)
