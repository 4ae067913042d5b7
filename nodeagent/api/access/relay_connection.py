"""One relayed connection: a client, the server's side of it, and the bytes that go between them.

It keeps at most one chunk each way: while one side takes nothing the other is not read. It ends as a whole.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from nodeagent.api.access.credentials import Peer

FLUSH_LIMIT_S: Final = 1.0
"""How long a connection that ends may take to hand over what was read for it."""

SEND_BUFFER_BYTES: Final = 32 * 1024
"""What the kernel keeps of what a side has not taken (it takes double the number); it would be 208 KiB."""

Forget = Callable[["RelayedConnection"], None]
"""Called, once or more, when a connection has ended or gives up its place."""


class RelayedConnection:
    """A client and the server's side of it: what one of them sends, the other is given."""

    def __init__(self, name: str, peer: Peer, chunk: memoryview, forget: Forget) -> None:
        self.name = name
        self.peer = peer
        self.calls = 0
        self._client = _Side(self, chunk)
        self._server = _Side(self, chunk)
        self._client.other, self._server.other = self._server, self._client
        self._forget = forget
        self._sides_left = 2
        self._is_closing = False
        self._is_resting = False
        self._joining: asyncio.Task[None] | None = None

    @property
    def is_readers(self) -> bool:
        """Whether its caller is known, and is no operator."""
        return self.peer.caller is not None and not self.peer.caller.is_operator

    @property
    def may_give_way(self) -> bool:
        """It has not made a call yet, or is idle and of an operator, by the kernel: their commands come
        and go, while a reader's connection is a subscriber's.
        """
        return self.peer.caller is None or (self.peer.is_operator and self.calls == 0)

    def begin(self, accepted: socket.socket, onward: socket.socket) -> None:
        self._joining = asyncio.create_task(self._join(accepted, onward))

    async def _join(self, accepted: socket.socket, onward: socket.socket) -> None:
        """Both are connected; this makes them the loop's, and waits for nothing but its turns."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: self._client, accepted)
        await loop.create_unix_connection(lambda: self._server, sock=onward)
        if self._is_closing:
            self.abort()

    def rest(self, rest_s: float) -> None:
        if not self._is_resting:
            self._is_resting = True
            self._client.pause_reading()
            asyncio.get_running_loop().call_later(rest_s, self._go_on)

    def _go_on(self) -> None:
        self._is_resting = False
        self._client.resume_reading()

    def ended(self) -> None:
        """One side has; the other is still given what was read for it, then it ends as well."""
        self._sides_left -= 1
        if self._sides_left == 0:
            self._forget(self)
        self.close()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._client.close()
            self._server.close()
            asyncio.get_running_loop().call_later(FLUSH_LIMIT_S, self.abort)

    def abort(self) -> None:
        """At once: its place is free for another."""
        self._is_closing = True
        self._forget(self)
        self._client.abort()
        self._server.abort()


class _Side(asyncio.BufferedProtocol):
    """One end: what it reads the other writes, and while the other cannot write it does not read."""

    other: "_Side"

    def __init__(self, connection: RelayedConnection, chunk: memoryview) -> None:
        self._connection = connection
        self._chunk = chunk
        self._pauses = 0
        self._early = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        own = self._transport.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if self._early:
            self._transport.write(self._early)
            self._early = b""
            self.other.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self._connection.ended()

    def get_buffer(self, _size: int) -> memoryview:
        return self._chunk

    def buffer_updated(self, size: int) -> None:
        self.other.write(bytes(self._chunk[:size]))

    def pause_writing(self) -> None:
        self.other.pause_reading()

    def resume_writing(self) -> None:
        self.other.resume_reading()

    def write(self, data: bytes) -> None:
        """Keeps what the other read before this side was the loop's; more is not read till then."""
        if self._transport is None:
            # A transport cannot begin paused: in Python 3.11.2 it reads after connection_made all the same.
            self._early = data
            self.other.pause_reading()
        else:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Until it is resumed as often: there may be several reasons."""
        self._pauses += 1
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._pauses -= 1
        if self._transport is not None and self._pauses == 0:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
