"""How a watch continues across broken streams: from where, after which pause, and when not at all. No I/O.

That the daemon does not answer is logged once, until it answers again: where logging is not set up, Python
writes the line to standard error.
"""

import logging
import random
from collections.abc import Iterable, Iterator

from nodeagent.client import received
from nodeagent.client.calls import ClientError
from nodeagent.client.position import Position
from nodeagent.client.received import Update
from nodeagent.core.model import EventKind, Level
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0

_FINAL = frozenset(
    {
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "PERMISSION_DENIED",
        "UNAUTHENTICATED",
        "FAILED_PRECONDITION",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
    }
)

_SNAPSHOTS = {
    "always": pb.SNAPSHOT_MODE_ALWAYS,
    "if_needed": pb.SNAPSHOT_MODE_IF_NEEDED,
    "never": pb.SNAPSHOT_MODE_NEVER,
}


def is_final(error: ClientError) -> bool:
    """Whether a stream that ended so would end so again, until something is changed."""
    return error.status in _FINAL


class WatchSession:
    """One watch. Make each stream with ``request``, and give its answers to ``updates``."""

    def __init__(
        self,
        *,
        after: Position | None = None,
        consumer: str = "",
        snapshot: str = "if_needed",
        kinds: Iterable[EventKind] = (),
        devices: Iterable[str] = (),
        minimum_level: Level | None = None,
        codes: Iterable[str] = (),
    ) -> None:
        if snapshot not in _SNAPSHOTS:
            raise ValueError(f"snapshot: {snapshot!r}; it must be one of {', '.join(_SNAPSHOTS)}")
        self._position = after
        self._consumer = consumer
        self._snapshot = _SNAPSHOTS[snapshot]
        self._filter = pb.EventFilter(
            kinds=[enums.EVENT_KINDS[each] for each in kinds],
            devices=devices,
            minimum_level=enums.level_number(minimum_level),
            codes=codes,
        )
        self._pause_s = FIRST_PAUSE_S
        self._is_away = False

    def request(self) -> pb.WatchRequest:
        """From the last position handed out. Only the first has a Snapshot that was merely asked for."""
        store_id = None
        if self._position is not None:
            store_id = types_pb2.StoreId(uuid=self._position.uuid, epoch=self._position.epoch)
        return pb.WatchRequest(
            consumer=self._consumer,
            store_id=store_id,
            after_seq=0 if self._position is None else self._position.seq,
            snapshot=self._snapshot,
            filter=self._filter,
        )

    def updates(self, response: pb.WatchResponse) -> Iterator[Update]:
        """The values of one message; the position moves on with each one taken."""
        self._pause_s = FIRST_PAUSE_S
        if self._is_away:
            self._is_away = False
            log.info("nodeagent answers again")
        if self._snapshot == pb.SNAPSHOT_MODE_ALWAYS:
            self._snapshot = pb.SNAPSHOT_MODE_IF_NEEDED
        for value in self._values(response):
            self._position = value.position
            yield value

    def _values(self, response: pb.WatchResponse) -> Iterator[Update]:
        match response.WhichOneof("payload"):
            case "snapshot":
                yield received.snapshot(response)
            case "batch":
                for message in response.batch.events:
                    yield received.event(message, response.store_id)
            case "bookmark":
                yield received.bookmark(response)

    def pause_s(self, error: ClientError) -> float:
        """As ``next_pause_s``. Raises the error where waiting cannot mend it."""
        if is_final(error):
            raise error
        if not self._is_away:
            self._is_away = True
            log.warning("nodeagent does not answer, waiting for it: %s", error)
        return self.next_pause_s()

    def next_pause_s(self) -> float:
        """How long to wait before the next stream: longer each time, until one has answered."""
        pause_s, self._pause_s = self._pause_s, min(LONGEST_PAUSE_S, 2 * self._pause_s)
        return pause_s * random.uniform(0.5, 1.0)  # so that a rack of clients does not come back at once
