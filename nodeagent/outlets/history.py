"""Pages of stored events, from the board's ring where it reaches back far enough, else from the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass

from nodeagent.outlets.filters import Filter
from nodeagent.outlets.refusal import Refusal, Status
from nodeagent.store.board import Board
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoredEvent

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
PAGE_EVENTS = 1000
MAX_PAGES = 20
"""One call looks at so many pages at most; a filter that passes little gives a short answer with ``more``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``events`` oldest first. ``more``: there is more to look at after ``next_after_seq``."""

    events: tuple[StoredEvent, ...]
    next_after_seq: int
    more: bool


def limit_of(asked: int) -> int:
    """What a request's limit means. Refuses one beyond ``MAX_LIMIT``."""
    if asked > MAX_LIMIT:
        raise Refusal(Status.INVALID_ARGUMENT, f"limit: {asked}; it must be 1 to {MAX_LIMIT}, or 0")
    return asked or DEFAULT_LIMIT


async def read(board: Board, ledger: Ledger, after_seq: int, limit: int) -> Sequence[StoredEvent]:
    """Published events after a number. Refuses with UNAVAILABLE while the store cannot be read."""
    last = board.current.seq
    events: Sequence[StoredEvent] | None = board.recent(after_seq)
    if events is None:
        try:
            events = await ledger.read_events(after_seq, limit)
        except (StoreUnreadableError, StoreDamagedError) as error:
            raise Refusal(Status.UNAVAILABLE, f"events after {after_seq}: {error}") from error
    return [each for each in events[:limit] if each.seq <= last]


async def page(
    board: Board, ledger: Ledger, *, after_seq: int, limit: int, newest: bool, wanted: Filter
) -> Page:
    """The first ``limit`` events after a number that pass the filter, or the last ones."""
    if newest:
        return await _newest(board, ledger, after_seq, limit, wanted)
    found: list[StoredEvent] = []
    position = after_seq
    for _ in range(MAX_PAGES):
        events = await read(board, ledger, position, PAGE_EVENTS)
        for stored in events:
            position = stored.seq
            if wanted.passes(stored):
                found.append(stored)
                if len(found) == limit:
                    return Page(
                        events=tuple(found), next_after_seq=position, more=position < board.current.seq
                    )
        if len(events) < PAGE_EVENTS:
            return Page(events=tuple(found), next_after_seq=position, more=False)
    return Page(events=tuple(found), next_after_seq=position, more=True)


async def _newest(board: Board, ledger: Ledger, after_seq: int, limit: int, wanted: Filter) -> Page:
    last = board.current.seq
    floor = max(after_seq, ledger.oldest_seq - 1, last - MAX_PAGES * PAGE_EVENTS)
    found: list[StoredEvent] = []
    start = last
    while start > floor and len(found) < limit:
        end, start = start, max(floor, start - PAGE_EVENTS)
        events = await read(board, ledger, start, end - start)
        wanted.forget()
        found = [each for each in events if wanted.passes(each)] + found
    return Page(events=tuple(found[-limit:]), next_after_seq=last, more=False)


async def latest(board: Board, ledger: Ledger) -> Sequence[StoredEvent]:
    """The latest events, as many as one page has."""
    return await read(board, ledger, max(0, board.current.seq - PAGE_EVENTS), PAGE_EVENTS)
