"""Values of the core <-> bytes in a column. Knows every stored type by its tag; decides nothing.

The tag has a column of its own (``kind``), the body is msgpack of the dataclass's fields. Of a condition the
fields of its values are stored with its own, as one map (``flat``): the store is older than they are.
Fields unknown to this version are ignored and missing ones take their default, so a field with a
default may be added without a migration. Whatever goes wrong in decoding is damage.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from nodeagent.core.model import Carried, Cell, Condition, Event, Input
from nodeagent.store import tags
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.flat import Flat
from nodeagent.store.records import Stamped, StoredEvent

InputRow = tuple[int, int, int, str, bytes]
"""number, rule_ns, wall_ns, kind, body."""

EventRow = tuple[int, int, bytes]
"""seq, wall_ns, body."""

CellRow = tuple[int, str, bytes, int]
"""ordinal, kind, body, base_input."""

Decoded = TypeVar("Decoded")

_encoder = msgspec.msgpack.Encoder()
_event_decoder = msgspec.msgpack.Decoder(Event)
_condition = Flat(Condition, {"users": "held_by", "belief": "backing"})
_cell_decoders: dict[str, msgspec.msgpack.Decoder[Cell] | Flat[Condition]] = {
    tag: _condition if kind is Condition else msgspec.msgpack.Decoder(kind)
    for tag, kind in tags.CELLS.items()
}
_input_decoders: dict[str, msgspec.msgpack.Decoder[Input]] = {
    tag: msgspec.msgpack.Decoder(kind) for tag, kind in tags.INPUTS.items()
}


def encode_input(value: Input) -> tuple[str, bytes]:
    """Give (kind, body) of one input."""
    if isinstance(value, Carried):
        return tags.CARRIED + tags.OF_CELLS[type(value.cell)], _encode_cell(value.cell)
    return tags.OF_INPUTS[type(value)], _encoder.encode(value)


def decode_input(kind: str, body: bytes) -> Input:
    """Undo ``encode_input``; raise StoreDamagedError for an unknown kind or a body that does not fit it."""
    if kind.startswith(tags.CARRIED):
        return Carried(cell=_decode_cell(kind.removeprefix(tags.CARRIED), body))
    return _decode(_decoder_of(_input_decoders, "an input", kind), f"an input of kind {kind}", body)


def decode_inputs(rows: Iterable[InputRow]) -> tuple[Stamped, ...]:
    """Decode whole rows, in their order; raise StoreDamagedError naming the first that does not fit."""
    stamped: list[Stamped] = []
    decoders = _input_decoders
    for number, rule_ns, wall_ns, kind, body in rows:
        try:
            value = decoders[kind].decode(body)
        except Exception:  # noqa: BLE001 - reported below, or there is nothing wrong but that it is a cell
            try:
                value = decode_input(kind, body)
            except StoreDamagedError as damage:
                raise StoreDamagedError(f"input {number}: {damage}") from damage
        stamped.append(Stamped(rule_ns=rule_ns, wall_ns=wall_ns, input=value))
    return tuple(stamped)


def encode_event(event: Event) -> bytes:
    return _encoder.encode(event)


def decode_event(row: EventRow) -> StoredEvent:
    """Decode a whole row; raise StoreDamagedError naming it where it does not fit."""
    seq, wall_ns, body = row
    return StoredEvent(seq=seq, wall_ns=wall_ns, event=_decode(_event_decoder, f"event {seq}", body))


def encode_cells(carried: Iterable[Carried], base_input: int) -> list[CellRow]:
    """``base_input`` is the number of the last input that the cells are the sum of."""
    return [
        (ordinal, tags.OF_CELLS[type(one.cell)], _encode_cell(one.cell), base_input)
        for ordinal, one in enumerate(carried)
    ]


def decode_cells(rows: Iterable[CellRow]) -> tuple[Carried, ...]:
    """Decode the base of a replay, in its order; raise StoreDamagedError for a row that does not fit."""
    return tuple(Carried(cell=_decode_cell(kind, body)) for _, kind, body, _ in rows)


def _encode_cell(cell: Cell) -> bytes:
    return _encoder.encode(_condition.flattened(cell) if isinstance(cell, Condition) else cell)


def _decode_cell(kind: str, body: bytes) -> Cell:
    return _decode(_decoder_of(_cell_decoders, "a cell", kind), f"a cell of kind {kind}", body)


def _decoder_of(decoders: dict[str, Decoded], what: str, kind: str) -> Decoded:
    decoder = decoders.get(kind)
    if decoder is None:
        raise StoreDamagedError(f"{what} of unknown kind {kind!r}: written by a newer version?")
    return decoder


def _decode(decoder: "msgspec.msgpack.Decoder[Decoded] | Any", what: str, body: bytes) -> Decoded:
    try:
        value: Decoded = decoder.decode(body)
    except Exception as error:
        raise StoreDamagedError(f"{what} cannot be decoded: {error}") from error
    return value
