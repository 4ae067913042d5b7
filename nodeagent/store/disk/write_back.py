"""The file brought to what memory holds, after disk trouble: reopen it, read back, write what is missing.

It knows what the file held, and so what of it was lost. When it is tried is decided by its caller.
"""

from collections.abc import Callable
from dataclasses import replace

from nodeagent.store.change import Change, Numbers
from nodeagent.store.disk.directory_lock import DirectoryLock
from nodeagent.store.disk.write_backlog import WriteBacklog
from nodeagent.store.disk.writer import Database, Writer
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.opening import Identity, Ours, open_again
from nodeagent.store.queries import State
from nodeagent.store.records import Damage, StoreId


class WriteBack:
    """``last`` gives the greatest numbers given so far, ``all_there_is`` what memory has of a file that lost
    it. What is found damaged is added to ``damages``.
    """

    def __init__(
        self,
        identity: Identity,
        lock: DirectoryLock,
        backlog: WriteBacklog,
        damages: list[Damage],
        last: Callable[[], Numbers],
        all_there_is: Callable[[], Change | None],
    ) -> None:
        self.damage = ""
        """What a read has found wrong with the file, "" if nothing."""
        self.is_bare = False
        """Whether the file lacks what memory has of it, as one that was repaired or made anew does."""
        self._identity = identity
        self._lock = lock
        self._backlog = backlog
        self._damages = damages
        self._last = last
        self._all_there_is = all_there_is
        self._on_disk = Numbers()
        """What the disk has said that it holds."""

    def note(self, on_disk: Numbers) -> None:
        """The disk has said that it holds these."""
        self._on_disk = self._on_disk.or_later(on_disk)

    async def run(self, writer: Writer, store_id: StoreId, *, unread: bool) -> None:
        """Write the backlog until nothing was added meanwhile; between that and the return nothing waits.

        Until then it stands under an epoch that nobody has seen, the next one. After a crash amid it the disk
        lacks numbers that were published under ours, and would give them to other events. ``unread``: the
        start could not read the file. Raises as ``open_again`` and the writer.
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

    def _take_and_reopen(self, database: Database, ours: Ours) -> tuple[State, Damage | None]:
        self._lock.take()
        return open_again(database, self._identity, ours)


def _lost(known: Numbers, found: Numbers) -> tuple[str, ...]:
    """What was on the disk and memory cannot write again, in words."""
    lines = (
        (found.seq, known.seq, "events {} to {} of the history"),
        (found.audit, known.audit, "entries {} to {} of the audit log"),
    )
    return tuple(words.format(there + 1, last) for there, last, words in lines if there < last)
