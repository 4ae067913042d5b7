"""One subscriber that lives longer than the daemon: it resumes by (store id, number) and keeps all it saw."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from nodeagent.client import AsyncClient, Event, EventKind, Position, Snapshot, Update
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.harness.daemon import Daemon
from tests.waiting import WAIT_LIMIT_S

Wanted = Callable[[Update], bool]

PAGE = 1000


class Subscriber:
    """``received`` is everything it ever got, in order; ``position`` is where the next stream continues."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._following: asyncio.Task[None] | None = None
        self._heard = asyncio.Condition()
        self.received: list[Update] = []
        self.position: Position | None = None

    @property
    def events(self) -> list[Event]:
        return [update for update in self.received if isinstance(update, Event)]

    @property
    def snapshots(self) -> list[Snapshot]:
        return [update for update in self.received if isinstance(update, Snapshot)]

    def of(self, kind: EventKind) -> list[Event]:
        return [event for event in self.events if event.kind is kind]

    async def follow(self) -> None:
        """Begin a stream after the last position, and wait for its first word."""
        await self.leave()
        heard = len(self.received)
        self._following = asyncio.create_task(self._follow())
        await self.until(_anything, after=heard)

    async def begin_with_the_first_event(self) -> None:
        """The next stream does not begin with the state, but with the first event that there is."""
        async with AsyncClient(self._daemon.socket) as client:
            stream = client.watch()
            now = (await anext(stream)).position
            await stream.aclose()
        self.position = replace(now, seq=0)

    async def leave(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def until(self, wanted: Wanted, after: int = 0) -> Update:
        """The first value wanted, from the ``after``-th on; waits for it. Fails if the daemon ends."""
        ended = asyncio.create_task(self._daemon.running.wait())
        search = asyncio.create_task(self._search(wanted, after))
        waited_for = {ended, search} | ({self._following} if self._following else set())
        try:
            await asyncio.wait(waited_for, timeout=WAIT_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
            if not search.done():
                raise AssertionError(f"missing; the last:\n{self._last_words()}\n{self._daemon.log[-3000:]}")
            return await search
        finally:
            for task in (ended, search):
                task.cancel()

    async def event(self, kind: EventKind, code: str, device: str = "", after: int = 0) -> Event:
        """The first such event, from the ``after``-th received value on."""

        def wanted(update: Update) -> bool:
            return (
                isinstance(update, Event)
                and (update.kind, update.code) == (kind, code)
                and device in ("", update.device)
            )

        update = await self.until(wanted, after)
        assert isinstance(update, Event)
        return update

    async def raised(self, code: str, device: str = "") -> Event:
        return await self.event(EventKind.RAISED, code, device)

    async def cleared(self, code: str, device: str = "") -> Event:
        return await self.event(EventKind.CLEARED, code, device)

    async def in_memory(self, after: int = 0) -> Snapshot:
        """The first Snapshot, from the ``after``-th received value on, of a store that is not durable."""
        update = await self.until(lambda update: isinstance(update, Snapshot) and not update.durable, after)
        assert isinstance(update, Snapshot)
        return update

    async def _follow(self) -> None:
        async with AsyncClient(self._daemon.socket) as client:
            async for update in client.watch(self.position):
                self.position = update.position
                async with self._heard:
                    self.received.append(update)
                    self._heard.notify_all()

    async def _search(self, wanted: Wanted, after: int) -> Update:
        async with self._heard:
            while True:
                while after < len(self.received):
                    if wanted(self.received[after]):
                        return self.received[after]
                    after += 1
                await self._heard.wait()

    def _last_words(self) -> str:
        return "\n".join(map(_line, self.received[-20:]))


def _anything(_: Update) -> bool:
    return True


def _line(update: Update) -> str:
    if isinstance(update, Event):
        return f"{update.seq} {update.kind} {update.device} {update.code} {update.why}"
    return f"{type(update).__name__} at {update.position}, durable: {update.durable}"


async def stored_events(daemon: Daemon) -> list[tuple[int, EventKind, str, str, str]]:
    """Everything that ListEvents gives: (number, kind, device, code, condition id)."""
    found: list[tuple[int, EventKind, str, str, str]] = []
    request, more = pb.ListEventsRequest(limit=PAGE), True
    while more:
        page = await daemon.asked(lambda client: client.call(request))
        found += [
            (one.seq, enums.EVENT_KIND_OF[one.kind], one.device, one.code, one.condition_id)
            for one in page.events
        ]
        request.after_seq, more = page.next_after_seq, page.more
    return found


def as_stored(events: Sequence[Event]) -> list[tuple[int, EventKind, str, str, str]]:
    """The same of what a subscriber received."""
    return [(one.seq, one.kind, one.device, one.code, one.condition_id) for one in events]


def without_gap(events: Sequence[Event]) -> bool:
    """Whether each number follows the one before."""
    return all(later.seq == earlier.seq + 1 for earlier, later in pairwise(events))


def meanings(events: Sequence[Event]) -> dict[tuple[str, int, int], set[tuple[str, ...]]]:
    """What each (store id, number) stood for: more than one meaning is one too many."""
    found: dict[tuple[str, int, int], set[tuple[str, ...]]] = {}
    for event in events:
        position = event.position
        key = (position.uuid, position.epoch, position.seq)
        meaning = (event.kind, event.device, event.code, event.condition_id, event.at.isoformat())
        found.setdefault(key, set()).add(meaning)
    return found
