"""Named consumers: their owners, and how far each has acknowledged. Kept whole in memory.

They never hold retention: a consumer that comes too late gets a new snapshot. No clock ends one: a name is
forgotten when its place is needed and retention has passed it, so that it is of no use any more. Writing
is the ledger's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from nodeagent.store.change import ConsumerRow
from nodeagent.store.errors import BeyondLastError, OtherOwnerError, OtherStoreError, TooManyConsumersError
from nodeagent.store.records import StoreId

MOST_CONSUMERS: Final = 64
MOST_OF_ONE: Final = 16
"""Names of one owner: a leak of one program leaves names for others."""

KEPT_FOR_OPERATORS: Final = 8

ANYBODY_LOCAL: Final = "unix"
"""The owner of what was acknowledged on the public socket before it distinguished users. The first user to
acknowledge under such a name is its owner from then on, as if the name were new; only operators delete one
that no user has taken over.
"""

_LOCAL_USER: Final = "uid:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A durable name, its owner, and the greatest number it acknowledged, when."""

    name: str
    owner: str
    seq: int
    acked_wall_ns: int

    @property
    def row(self) -> ConsumerRow:
        return self.name, self.owner, self.seq, self.acked_wall_ns

    def belongs_to(self, identity: str) -> bool:
        return identity == self.owner or (self.owner == ANYBODY_LOCAL and identity.startswith(_LOCAL_USER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """What an acknowledgement is checked against: the store in force, its last and its oldest number."""

    store_id: StoreId
    last_seq: int
    oldest_seq: int


class Consumers:
    """All consumers of the store."""

    def __init__(self, rows: Iterable[ConsumerRow]) -> None:
        self._by_name = {
            name: Consumer(name=name, owner=owner, seq=seq, acked_wall_ns=acked_wall_ns)
            for name, owner, seq, acked_wall_ns in rows
        }

    def all(self) -> tuple[Consumer, ...]:
        """All consumers, sorted by name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def get(self, name: str) -> Consumer | None:
        return self._by_name.get(name)

    def delete(self, name: str) -> dict[str, ConsumerRow | None]:
        """Forget it; the rows to be written."""
        self._by_name.pop(name, None)
        return {name: None}

    def ack(
        self, asked: Consumer, store_id: StoreId, numbering: Numbering, *, is_operator: bool
    ) -> tuple[Consumer, dict[str, ConsumerRow | None]]:
        """Take an acknowledgement: (the consumer as it is now, the rows to be written).

        A number lower than the known one only renews the date. Raises OtherStoreError, BeyondLastError,
        OtherOwnerError or TooManyConsumersError, and then nothing has changed.
        """
        _check_store(store_id, numbering)
        if not 0 <= asked.seq <= numbering.last_seq:
            raise BeyondLastError(f"number {asked.seq} was never given: the last one is {numbering.last_seq}")
        known = self.get(asked.name)
        rows: dict[str, ConsumerRow | None] = {}
        if known is None:
            rows |= self._make_room(asked.owner, numbering.oldest_seq, is_operator=is_operator)
        elif not known.belongs_to(asked.owner):
            raise OtherOwnerError(f"consumer {asked.name!r} belongs to {known.owner}: choose another name")
        elif known.owner != asked.owner:
            rows |= self._make_room_among_own(asked.owner, numbering.oldest_seq)
        consumer = replace(asked, seq=max(asked.seq, known.seq)) if known is not None else asked
        self._by_name[asked.name] = consumer
        return consumer, {**rows, asked.name: consumer.row}

    def rewind(
        self, name: str, store_id: StoreId, seq: int, numbering: Numbering
    ) -> tuple[Consumer, dict[str, ConsumerRow | None]]:
        """Set one that there is back: (the consumer as it is now, the rows to be written).

        A number before the oldest event that is kept becomes the one just before it. Raises OtherStoreError
        or BeyondLastError, and then nothing has changed.
        """
        _check_store(store_id, numbering)
        known = self._by_name[name]
        if not 0 <= seq <= known.seq:
            reason = f"number {seq} is beyond {known.seq}, the last that {name!r} has acknowledged"
            raise BeyondLastError(f"{reason}: only Ack moves a consumer on")
        consumer = replace(known, seq=min(max(seq, numbering.oldest_seq - 1), known.seq))
        self._by_name[name] = consumer
        return consumer, {name: consumer.row}

    def _make_room(self, owner: str, oldest_seq: int, *, is_operator: bool) -> dict[str, ConsumerRow | None]:
        """Make room for one more name: of its owner, and of all there are. Raises TooManyConsumersError."""
        rows = self._make_room_among_own(owner, oldest_seq)
        count = len(self._by_name)
        if rows or count < MOST_CONSUMERS - (0 if is_operator else KEPT_FOR_OPERATORS):
            return rows
        return self._forget_passed(self._by_name.values(), f"there are {count} consumers already", oldest_seq)

    def _make_room_among_own(self, owner: str, oldest_seq: int) -> dict[str, ConsumerRow | None]:
        """Raises TooManyConsumersError."""
        own = [one for one in self._by_name.values() if one.owner == owner]
        if len(own) < MOST_OF_ONE:
            return {}
        return self._forget_passed(own, f"{owner} has {MOST_OF_ONE} consumers already", oldest_seq)

    def _forget_passed(
        self, among: Iterable[Consumer], reason: str, oldest_seq: int
    ) -> dict[str, ConsumerRow | None]:
        """Forget the one furthest behind, if retention has passed it; else raise TooManyConsumersError."""
        furthest_behind = min(among, key=lambda one: one.seq)
        if furthest_behind.seq + 1 >= oldest_seq:
            raise TooManyConsumersError(f"{reason}: reuse a name, or delete one that is not used any more")
        return self.delete(furthest_behind.name)


def _check_store(store_id: StoreId, numbering: Numbering) -> None:
    """Raises OtherStoreError."""
    if store_id != numbering.store_id:
        raise OtherStoreError(
            f"store {store_id} is not in force, {numbering.store_id} is: ask for a new snapshot"
        )
