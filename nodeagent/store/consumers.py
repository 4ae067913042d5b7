"""Named consumers: how far each has acknowledged. Kept whole in memory, at most 64, 30 days each.

They never hold retention: a consumer that comes too late gets a new snapshot. Writing is the ledger's.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.store.change import ConsumerRow
from nodeagent.store.errors import BeyondLastError, OtherOwnerError, OtherStoreError, TooManyConsumersError
from nodeagent.store.records import StoreId

MOST_CONSUMERS = 64
EXPIRY_NS = 30 * 24 * 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A durable name, the identity that made it, and the greatest number it acknowledged, when."""

    name: str
    owner: str
    seq: int
    acked_wall_ns: int

    @property
    def row(self) -> ConsumerRow:
        return self.name, self.owner, self.seq, self.acked_wall_ns


class Consumers:
    """All consumers that have not expired."""

    def __init__(self, rows: Iterable[ConsumerRow]) -> None:
        self._by_name = {
            name: Consumer(name=name, owner=owner, seq=seq, acked_wall_ns=acked_wall_ns)
            for name, owner, seq, acked_wall_ns in rows
        }

    def all(self, now_wall_ns: int) -> tuple[Consumer, ...]:
        return tuple(one for one in self._by_name.values() if not _expired(one, now_wall_ns))

    def get(self, name: str, now_wall_ns: int) -> Consumer | None:
        consumer = self._by_name.get(name)
        return None if consumer is None or _expired(consumer, now_wall_ns) else consumer

    def expire(self, now_wall_ns: int) -> tuple[str, ...]:
        """Forget who has not acknowledged for 30 days; give their names."""
        gone = tuple(name for name, one in self._by_name.items() if _expired(one, now_wall_ns))
        for name in gone:
            del self._by_name[name]
        return gone

    def ack(
        self, asked: Consumer, store_id: StoreId, current: StoreId, last_seq: int
    ) -> tuple[Consumer, dict[str, ConsumerRow | None]]:
        """Take an acknowledgement: (the consumer as it stands, the rows to be written).

        A number lower than the known one only renews the date. Raises OtherStoreError, BeyondLastError,
        OtherOwnerError or TooManyConsumersError, and then nothing has changed.
        """
        if store_id != current:
            raise OtherStoreError(f"store {store_id} is not in force, {current} is: ask for a new snapshot")
        if not 0 <= asked.seq <= last_seq:
            raise BeyondLastError(f"number {asked.seq} was never given: the last one is {last_seq}")
        known = self.get(asked.name, asked.acked_wall_ns)
        if known is not None and known.owner != asked.owner:
            raise OtherOwnerError(f"consumer {asked.name!r} belongs to another identity: choose another name")
        gone = self.expire(asked.acked_wall_ns)
        if known is None and len(self._by_name) >= MOST_CONSUMERS:
            raise TooManyConsumersError(f"there are {MOST_CONSUMERS} consumers already: reuse a name")
        seq = max(asked.seq, known.seq) if known is not None else asked.seq
        consumer = Consumer(name=asked.name, owner=asked.owner, seq=seq, acked_wall_ns=asked.acked_wall_ns)
        self._by_name[asked.name] = consumer
        return consumer, {**dict.fromkeys(gone), asked.name: consumer.row}


def _expired(consumer: Consumer, now_wall_ns: int) -> bool:
    return now_wall_ns - consumer.acked_wall_ns > EXPIRY_NS
