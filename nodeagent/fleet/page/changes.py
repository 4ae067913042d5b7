"""The nodes as a stream of server-sent events (HTML Living Standard, 9.2): first all of them, then those that
changed.

A reader that is slow gets what changed since its last event in one, so nothing is kept for it. The id of an
event is this process and a generation of changes. After a lost connection a browser names it, and gets the
changes since then if they are known, else all nodes.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from nodeagent import __version__
from nodeagent.fleet.page.rows import encoded, milliseconds, node_row, quiet_nodes
from nodeagent.fleet.state import NodeState, NodeStates

EVERY_S: Final = 0.25
"""The changes of so long are one event."""

ALIVE_EVERY_S: Final = 10.0
"""A page that gets nothing for much longer shows that its data is old."""

QUIET_AFTER_S: Final = 45.0
"""A daemon sends something each 30 s (``api.faults.watch``): one that has not for so long may be gone."""

RETRY_MS: Final = 2_000
MAX_REMOVED: Final = 10_000
"""How many removals are remembered for readers that come back."""


class FleetChanges:
    """Encodes each change once for all readers, and only while there are any."""

    def __init__(self, node_states: NodeStates) -> None:
        self._node_states = node_states
        self._run = secrets.token_hex(6)
        self._version = -1
        self._generation = 0
        self._seen: dict[str, NodeState] = {}
        # Each with its generation, the oldest first.
        self._rows: dict[str, tuple[int, bytes]] = {}
        self._removed: dict[str, int] = {}
        self._complete_since = 0
        self._readers = 0
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Looks for changes without end, while somebody follows."""
        while True:
            await asyncio.sleep(EVERY_S)
            if self._readers:
                self._take()

    async def follow(self, last_event_id: str = "") -> AsyncGenerator[bytes, None]:
        """Without end, while ``run`` runs. Each value is one or more whole events, of everything that is new
        when it is taken. The first comes at once.
        """
        self._readers += 1
        try:
            self._take()
            position = self._position(last_event_id)
            news = self._all() if position is None else self._since(position)
            position = self._generation
            yield f"retry: {RETRY_MS}\n\n".encode() + news
            while True:
                if not await self._is_newer(position):
                    yield self._alive()
                    continue
                news, position = self._since(position), self._generation
                yield news
        finally:
            self._readers -= 1

    async def _is_newer(self, position: int) -> bool:
        """Waits for a change; false where none comes for a while."""
        changed = self._changed
        if position == self._generation:
            with suppress(TimeoutError):
                async with asyncio.timeout(ALIVE_EVERY_S):
                    await changed.wait()
        return position != self._generation

    def _take(self) -> None:
        """What changed from the last time on is a new generation."""
        if self._version == self._node_states.version:
            return
        self._version = self._node_states.version
        self._generation += 1
        self._changed.set()
        self._changed = asyncio.Event()
        states = self._node_states.states
        for name in self._seen.keys() - states.keys():
            del self._seen[name], self._rows[name]
            self._removed[name] = self._generation
        while len(self._removed) > MAX_REMOVED:
            self._complete_since = self._removed.pop(next(iter(self._removed)))
        for name, state in states.items():
            if self._seen.get(name) is not state:
                self._seen[name] = state
                self._removed.pop(name, None)
                self._rows.pop(name, None)
                row = node_row(state, self._node_states.heard_at.get(name))
                self._rows[name] = (self._generation, encoded(row))

    def _position(self, event_id: str) -> int | None:
        """The generation of an id; None where what came after it is not known."""
        run, _, number = event_id.partition("-")
        if run != self._run or not (number.isascii() and number.isdecimal()) or len(number) > 15:
            return None
        return int(number) if self._complete_since <= int(number) <= self._generation else None

    def _all(self) -> bytes:
        return self._event("all", [row for _, row in self._rows.values()], [])

    def _since(self, position: int) -> bytes:
        rows: list[bytes] = []
        for generation, row in reversed(self._rows.values()):
            if generation <= position:
                break
            rows.append(row)
        removed = [name for name, generation in self._removed.items() if generation > position]
        return self._event("changes", rows, removed)

    def _event(self, name: str, rows: list[bytes], removed: list[str]) -> bytes:
        start = f'{{"at":{_now_ms()},"version":"{__version__}","removed":'.encode()
        data = b"".join((start, encoded(removed), b',"nodes":[', b",".join(rows), b"]}"))
        return f"id: {self._run}-{self._generation}\nevent: {name}\ndata: ".encode() + data + b"\n\n"

    def _alive(self) -> bytes:
        """Not a comment: a page's script does not see comments."""
        before = datetime.now(UTC) - timedelta(seconds=QUIET_AFTER_S)
        quiet = quiet_nodes(self._node_states.heard_at.items(), before)
        return b"event: alive\ndata: " + encoded({"at": _now_ms(), "quiet": quiet}) + b"\n\n"


def _now_ms() -> int | None:
    return milliseconds(datetime.now(UTC))
