"""Values of the core <-> bytes in a column. Knows every stored type by name; decides nothing.

The name stands in a column of its own (``kind``), the body is msgpack of the dataclass's fields.
Fields unknown to this version are ignored and missing ones take their default, so a field with a
default may be added without a migration.
"""

from collections.abc import Iterable
from typing import get_args

import msgspec

from nodeagent.core.model import Carried, Cell, Event, Input
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.records import Stamped, StoredEvent

InputRow = tuple[int, int, int, str, bytes]
"""number, rule_ns, wall_ns, kind, body."""

EventRow = tuple[int, int, bytes]
"""seq, wall_ns, body."""

CellRow = tuple[int, str, bytes]
"""ordinal, kind, body."""

_CARRIED = "Carried:"

_encoder = msgspec.msgpack.Encoder()
_event_decoder = msgspec.msgpack.Decoder(Event)
_cell_decoders: dict[str, msgspec.msgpack.Decoder[Cell]] = {
    cell.__name__: msgspec.msgpack.Decoder(cell) for cell in get_args(Cell)
}
_input_decoders: dict[str, msgspec.msgpack.Decoder[Input]] = {
    kind.__name__: msgspec.msgpack.Decoder(kind) for kind in get_args(Input) if kind is not Carried
}


def encode_input(value: Input) -> tuple[str, bytes]:
    """Give (kind, body) of one input."""
    if isinstance(value, Carried):
        return _CARRIED + type(value.cell).__name__, _encoder.encode(value.cell)
    return type(value).__name__, _encoder.encode(value)


def decode_input(kind: str, body: bytes) -> Input:
    """Undo ``encode_input``; raise StoreDamagedError for an unknown kind or a body that does not fit it."""
    if kind.startswith(_CARRIED):
        return Carried(cell=_decode_cell(kind.removeprefix(_CARRIED), body))
    decoder = _input_decoders.get(kind)
    if decoder is None:
        raise StoreDamagedError(f"an input of unknown kind {kind!r}: written by a newer version?")
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise StoreDamagedError(f"an input of kind {kind} cannot be decoded: {error}") from error


def decode_inputs(rows: Iterable[InputRow]) -> tuple[Stamped, ...]:
    """Decode whole rows, in their order; raise StoreDamagedError naming the first that does not fit."""
    stamped: list[Stamped] = []
    decoders = _input_decoders
    for number, rule_ns, wall_ns, kind, body in rows:
        try:
            value = decoders[kind].decode(body)
        except (KeyError, msgspec.MsgspecError):
            try:
                value = decode_input(kind, body)
            except StoreDamagedError as damage:
                raise StoreDamagedError(f"input {number}: {damage}") from damage
        stamped.append(Stamped(rule_ns=rule_ns, wall_ns=wall_ns, input=value))
    return tuple(stamped)


def encode_event(event: Event) -> bytes:
    return _encoder.encode(event)


def decode_events(rows: Iterable[EventRow]) -> list[StoredEvent]:
    """Decode whole rows, in their order; raise StoreDamagedError naming the first that does not fit."""
    stored: list[StoredEvent] = []
    for seq, wall_ns, body in rows:
        try:
            event = _event_decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise StoreDamagedError(f"event {seq} cannot be decoded: {error}") from error
        stored.append(StoredEvent(seq=seq, wall_ns=wall_ns, event=event))
    return stored


def encode_cells(carried: Iterable[Carried]) -> list[CellRow]:
    return [
        (ordinal, type(one.cell).__name__, _encoder.encode(one.cell)) for ordinal, one in enumerate(carried)
    ]


def decode_cells(rows: Iterable[CellRow]) -> tuple[Carried, ...]:
    """Decode the base of a replay, in its order; raise StoreDamagedError for a row that does not fit."""
    return tuple(Carried(cell=_decode_cell(kind, body)) for _, kind, body in rows)


def _decode_cell(kind: str, body: bytes) -> Cell:
    decoder = _cell_decoders.get(kind)
    if decoder is None:
        raise StoreDamagedError(f"a cell of unknown kind {kind!r}: written by a newer version?")
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise StoreDamagedError(f"a cell of kind {kind} cannot be decoded: {error}") from error
