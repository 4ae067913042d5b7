"""WatchResponses as bytes: each event is serialised once, however many streams it goes to.

A batch is put together from those bytes by the rules of the wire format (a message is its fields one
after the other), which costs a fiftieth of building it from messages. Nothing else writes wire bytes.
"""

from collections import OrderedDict
from collections.abc import Sequence

from google.protobuf.message import Message

from nodeagent.outlets import messages
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent, StoreId

CACHED_EVENTS = 4096

_LENGTH_DELIMITED = 2
_EVENTS_TAG = bytes([pb.EventBatch.EVENTS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])
_BATCH_TAG = bytes([pb.WatchResponse.BATCH_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])


class Frames:
    """Serialised responses of one node. Used from the event loop only."""

    def __init__(self, facts: NodeFacts, capacity: int = CACHED_EVENTS) -> None:
        self._node = messages.node_identity(facts)
        self._capacity = capacity
        self._events: OrderedDict[int, tuple[StoredEvent, bytes]] = OrderedDict()
        self._newest = 0
        self._header: tuple[StoreId, bool, bytes] | None = None

    @property
    def kept(self) -> Sequence[int]:
        """Numbers of the events whose bytes are kept."""
        return tuple(self._events)

    def snapshot(self, store_id: StoreId, durable: bool, snapshot: pb.Snapshot) -> bytes:
        return self._response(store_id, durable, snapshot=snapshot)

    def bookmark(self, store_id: StoreId, durable: bool, seq: int) -> bytes:
        return self._response(store_id, durable, bookmark=pb.Bookmark(seq=seq))

    def batch(self, store_id: StoreId, durable: bool, events: Sequence[StoredEvent]) -> bytes:
        body = b"".join([self._event(each) for each in events])
        return b"".join((self._prologue(store_id, durable), _BATCH_TAG, _varint(len(body)), body))

    def _response(
        self,
        store_id: StoreId,
        durable: bool,
        snapshot: pb.Snapshot | None = None,
        bookmark: pb.Bookmark | None = None,
    ) -> bytes:
        told: Message = pb.WatchResponse(snapshot=snapshot, bookmark=bookmark)
        return self._prologue(store_id, durable) + told.SerializeToString()

    def _prologue(self, store_id: StoreId, durable: bool) -> bytes:
        if self._header is None or self._header[:2] != (store_id, durable):
            message = pb.WatchResponse(node=self._node, store_id=messages.store_id(store_id), durable=durable)
            self._header = (store_id, durable, message.SerializeToString())
        return self._header[2]

    def _event(self, stored: StoredEvent) -> bytes:
        """One element of EventBatch.events. Old events, read from the disk for one stream, are not kept."""
        cached = self._events.get(stored.seq)
        if cached is not None and cached[0] is stored:
            return cached[1]
        payload = messages.event(stored).SerializeToString()
        frame = b"".join((_EVENTS_TAG, _varint(len(payload)), payload))
        self._newest = max(self._newest, stored.seq)
        if stored.seq > self._newest - self._capacity:
            self._events[stored.seq] = (stored, frame)
            while len(self._events) > self._capacity:
                self._events.popitem(last=False)
        return frame


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
