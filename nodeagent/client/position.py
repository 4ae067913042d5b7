"""How far a stream of events was read. A program keeps a position with the effect of what it has read."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Everything up to ``seq`` of this store was read. ``str`` and ``parse`` make it a text and back."""

    uuid: str
    epoch: int
    seq: int

    def __str__(self) -> str:
        return f"{self.uuid}:{self.epoch}:{self.seq}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ``ValueError`` if the text is not what ``str`` gave."""
        uuid, epoch, seq = text.rsplit(":", 2)
        return cls(uuid=uuid, epoch=int(epoch), seq=int(seq))


@dataclass(frozen=True, slots=True, kw_only=True)
class Positioned:
    """A part of the stream. Store ``position`` once its effect is done."""

    position: Position

    @property
    def seq(self) -> int:
        return self.position.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark(Positioned):
    """No event up to here passes the filter: the position may be stored."""

    durable: bool
