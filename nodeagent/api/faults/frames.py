"""Responses with events as bytes: each event is serialised once, however many streams and answers it goes to.

A batch is put together from those bytes by the rules of the wire format (a message is its fields one
after the other), which costs a fiftieth of building it from messages. Nothing else writes wire bytes.
"""

from collections import OrderedDict
from collections.abc import Sequence

from google.protobuf.message import Message

from nodeagent.api import messages
from nodeagent.api.access import limits
from nodeagent.api.messages import NodeFacts
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent, StoreId

CACHED_EVENTS = 4096

_LENGTH_DELIMITED = 2
_EVENTS_TAG = bytes([pb.EventBatch.EVENTS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])
_LISTED_TAG = bytes([pb.ListEventsResponse.EVENTS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])
_BATCH_TAG = bytes([pb.WatchResponse.BATCH_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])


class Frames:
    """Serialised responses of one node. Used from the event loop only."""

    def __init__(self, facts: NodeFacts, capacity: int = CACHED_EVENTS) -> None:
        self._node = messages.node_identity(facts)
        self._capacity = capacity
        self._events: OrderedDict[int, tuple[StoredEvent, bytes]] = OrderedDict()
        self._newest = 0
        self.snapshot_size = limits.SMALL_ANSWER_BYTES
        """The size of the last snapshot: the next one will be about as large."""
        self._header: tuple[StoreId, bool, bytes] | None = None

    @property
    def kept(self) -> Sequence[int]:
        """Numbers of the events whose bytes are kept."""
        return tuple(self._events)

    def snapshot(self, store_id: StoreId, durable: bool, snapshot: pb.Snapshot) -> bytes:
        response = self._response(store_id, durable, snapshot=snapshot)
        self.snapshot_size = len(response)
        return response

    def bookmark(self, store_id: StoreId, durable: bool, seq: int) -> bytes:
        return self._response(store_id, durable, bookmark=pb.Bookmark(seq=seq))

    def batch(self, store_id: StoreId, durable: bool, events: Sequence[bytes]) -> bytes:
        """``events`` as ``event`` gives them."""
        body = _EVENTS_TAG.join((b"", *events))
        return b"".join((self._prologue(store_id, durable), _BATCH_TAG, _varint(len(body)), body))

    def listed(self, response: pb.ListEventsResponse, events: Sequence[bytes]) -> bytes:
        """``response`` with ``events``, as ``event`` gives them."""
        return response.SerializeToString() + _LISTED_TAG.join((b"", *events))

    def _response(
        self,
        store_id: StoreId,
        durable: bool,
        snapshot: pb.Snapshot | None = None,
        bookmark: pb.Bookmark | None = None,
    ) -> bytes:
        response: Message = pb.WatchResponse(snapshot=snapshot, bookmark=bookmark)
        return self._prologue(store_id, durable) + response.SerializeToString()

    def _prologue(self, store_id: StoreId, durable: bool) -> bytes:
        if self._header is None or self._header[:2] != (store_id, durable):
            message = pb.WatchResponse(node=self._node, store_id=messages.store_id(store_id), durable=durable)
            self._header = (store_id, durable, message.SerializeToString())
        return self._header[2]

    def event(self, stored: StoredEvent) -> bytes:
        """An element of a repeated field without its tag: the length, then the event.

        Old events, read from the disk for one caller, are not kept.
        """
        cached = self._events.get(stored.seq)
        if cached is not None and cached[0] is stored:
            return cached[1]
        payload = messages.event(stored).SerializeToString()
        element = _varint(len(payload)) + payload
        self._newest = max(self._newest, stored.seq)
        if stored.seq > self._newest - self._capacity:
            self._events[stored.seq] = (stored, element)
            while len(self._events) > self._capacity:
                self._events.popitem(last=False)
        return element


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
