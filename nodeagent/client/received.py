"""From the messages that are received to the values that the client hands out.

Most functions are generated; here are those that need more than the message. ``Update`` is what ``watch``
gives.
"""

from nodeagent.client.generated import reading
from nodeagent.client.generated.reading import condition, consumer, device, job
from nodeagent.client.generated.values import Event, Snapshot
from nodeagent.client.position import Bookmark, Position
from nodeagent.messages.pb import fault_service_pb2, types_pb2

__all__ = ["Update", "bookmark", "condition", "consumer", "device", "event", "job", "position", "snapshot"]

Update = Snapshot | Event | Bookmark


def position(store_id: types_pb2.StoreId, seq: int) -> Position:
    return Position(uuid=store_id.uuid, epoch=store_id.epoch, seq=seq)


def event(message: types_pb2.Event, store_id: types_pb2.StoreId) -> Event:
    return reading.event(message, position=position(store_id, message.seq))


def snapshot(response: fault_service_pb2.WatchResponse) -> Snapshot:
    at = position(response.store_id, response.snapshot.seq)
    return reading.snapshot(response.snapshot, position=at, durable=response.durable)


def bookmark(response: fault_service_pb2.WatchResponse) -> Bookmark:
    return Bookmark(position=position(response.store_id, response.bookmark.seq), durable=response.durable)
