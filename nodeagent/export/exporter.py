"""Follows the daemon under a name, and acknowledges each event once the receiver has taken it.

The daemon keeps the position: a new process goes on after the last event that was acknowledged. While the
receiver takes nothing, little is read: the events wait in the daemon's store.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from nodeagent.client import Client, ClientError, EventKind, Level, Position
from nodeagent.client.received import position
from nodeagent.client.session import WatchSession
from nodeagent.export.delivery import RecordDelivery
from nodeagent.export.read_ahead import ReadAhead
from nodeagent.export.records import Form, records_of, resync_of
from nodeagent.messages.pb import fault_service_pb2 as pb

ACKNOWLEDGE_EVERY_S: Final = 1.0
"""While there is more to send. After a crash, what the receiver took since then comes again."""

_STORE_IS_NEW: Final = "FAILED_PRECONDITION"

_log = logging.getLogger(__name__)


class _StreamBeginsElsewhere(Exception):
    """The stream is to go on after this position."""

    def __init__(self, position: Position) -> None:
        super().__init__(str(position))
        self.position = position


class EventExporter:
    """``from_beginning`` is where a name that the daemon does not know yet begins: with the oldest event that
    is kept, or else with the next one.
    """

    def __init__(
        self,
        client: Client,
        delivery: RecordDelivery,
        *,
        consumer: str,
        form: Form,
        from_beginning: bool,
        kinds: Iterable[EventKind] = (),
        devices: Iterable[str] = (),
        minimum_level: Level | None = None,
        codes: Iterable[str] = (),
    ) -> None:
        self._client = client
        self._delivery = delivery
        self._consumer = consumer
        self._form = form
        self._from_beginning = from_beginning
        self.acknowledging: Position | None = None
        """What was acknowledged last, set before the daemon gets it: a later one is of another exporter."""
        self._acknowledged: Position | None = None
        self._acknowledged_s = 0.0
        self._filter = partial(
            WatchSession,
            consumer=consumer,
            kinds=tuple(kinds),
            devices=tuple(devices),
            minimum_level=minimum_level,
            codes=tuple(codes),
        )
        self._session = self._filter()

    def run(self) -> None:
        """Without end. Raises ``ClientError`` where the daemon refuses to be followed under this name."""
        is_begun = False
        while True:
            try:
                if not is_begun:
                    self._begin()
                    is_begun = True
                with ReadAhead(self._client.stream(self._session.request())) as stream:
                    while True:
                        self._take(stream.next())
            except _StreamBeginsElsewhere as other:
                self._session = self._filter(after=other.position)
            except ClientError as failure:
                time.sleep(self._session.pause_s(failure))

    def _begin(self) -> None:
        """A new name gets its position before the first event, so that no crash can skip one."""
        listed = self._client.call(pb.ListConsumersRequest())
        known = next((each for each in listed.consumers if each.name == self._consumer), None)
        if known is not None:
            self.acknowledging = position(listed.store_id, known.seq)
            return
        node = self._client.call(pb.GetNodeRequest())
        seq = node.oldest_seq - 1 if self._from_beginning else node.last_seq
        self.acknowledging = position(node.store_id, seq)
        self._client.ack(self._consumer, self.acknowledging)
        _log.info("%s begins after event %d", self._consumer, seq)

    def _take(self, responses: Sequence[pb.WatchResponse]) -> None:
        """Messages of the stream, to the receiver and then to the daemon."""
        for is_snapshot, together in groupby(responses, lambda each: bool(each.HasField("snapshot"))):
            if is_snapshot:
                for response in together:
                    self._resync(response)
            else:
                self._deliver(list(together))

    def _deliver(self, responses: Sequence[pb.WatchResponse]) -> None:
        updates = [update for response in responses for update in self._session.updates(response)]
        records = [record for response in responses for record in records_of(response, self._form)]
        for reached in self._delivery.deliver(records):
            if time.monotonic() - self._acknowledged_s >= ACKNOWLEDGE_EVERY_S:
                self._acknowledge(reached)
        self._acknowledge(updates[-1].position)

    def _resync(self, response: pb.WatchResponse) -> None:
        """Reports the loss. The events behind it that are still kept are not lost: they come next."""
        (update,) = self._session.updates(response)
        record = resync_of(response, self._last_missing(response))
        _log.error("%s", record.text)
        for reached in self._delivery.deliver([record]):
            self._acknowledge(reached)
        if record.position != update.position:
            raise _StreamBeginsElsewhere(record.position)

    def _last_missing(self, response: pb.WatchResponse) -> int:
        """The number before the first event that is kept; that of the snapshot where none is."""
        first, last = response.snapshot.missed_from_seq, int(response.snapshot.seq)
        if not first:
            return last
        kept = self._client.call(pb.ListEventsRequest(after_seq=first - 1, limit=1))
        if kept.store_id != response.store_id or not kept.events:
            return last
        before = int(kept.events[0].seq) - 1
        return before if first <= before < last else last

    def _acknowledge(self, latest: Position) -> None:
        if latest == self._acknowledged:
            return
        self.acknowledging = latest
        try:
            self._client.ack(self._consumer, latest)
        except ClientError as failure:
            if failure.status != _STORE_IS_NEW:
                raise
            return  # a snapshot of the new store follows
        self._acknowledged = latest
        self._acknowledged_s = time.monotonic()
