"""A peer that speaks HTTP/2 only as far as it likes: it never reads, or sends half of what it began.

Frames and headers as in RFC 9113 and RFC 7541, written out, since no client library lets one misbehave so.
"""

import socket
import struct
from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LARGEST_WINDOW = 2**31 - 1
DEFAULT_WINDOW = 65_535

_DATA, _HEADERS, _SETTINGS, _WINDOW_UPDATE = 0, 1, 4, 8
_END_STREAM, _END_HEADERS = 1, 4
_INITIAL_WINDOW_SIZE = 4


def opening(window: int = LARGEST_WINDOW) -> bytes:
    """``window`` is how much the server may send on each stream before it hears of any of it being read."""
    settings = _frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW_SIZE, window))
    return (
        PREFACE + settings + _frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW - DEFAULT_WINDOW))
    )


def call(number: int, method: str, message: bytes | None) -> bytes:
    """The ``number``-th call of a connection, from 0. ``message`` None: its request never comes."""
    stream = 2 * number + 1
    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "node"}
    fields |= {"content-type": "application/grpc", "te": "trailers"}
    begun = _frame(_HEADERS, _END_HEADERS, stream, b"".join(map(_field, *zip(*fields.items(), strict=True))))
    if message is None:
        return begun
    return begun + _frame(_DATA, _END_STREAM, stream, struct.pack(">BI", 0, len(message)) + message)


def connected(path: Path, window: int = LARGEST_WINDOW) -> socket.socket:
    """To a unix socket; it has opened HTTP/2, and reads nothing."""
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(str(path))
    peer.sendall(opening(window))
    return peer


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def _field(name: str, value: str) -> bytes:
    """A literal that is put into no table."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
