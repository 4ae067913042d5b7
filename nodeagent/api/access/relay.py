"""A relay in front of a gRPC server, which finds out who connects: gRPC cannot see that itself.

gRPC shows of a unix client only the name that its socket is bound to. So the relay accepts connections, asks
the kernel for the peer, connects to the server's private socket from a socket that it binds to an abstract
name of its own choice, and copies bytes. It counts connections, and keeps at most one chunk in each
direction: while one side does not read, the other side is not read either. Both sides end together.

A client cannot pose as another: the private socket lies in a directory of mode 0700, and a name counts only
while it is in the relay's own list, bound by the relay. Names are random, so no client can take one in
advance.
"""

import asyncio
import errno
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from nodeagent.api.access import limits
from nodeagent.api.access.credentials import Caller, ConnectionPeer, Recognise
from nodeagent.api.access.quota import Quota, Rate
from nodeagent.api.access.sockets import BACKLOG, remove
from nodeagent.api.refusal import Refusal, RefusalLimit, Status

CHUNK_BYTES: Final = 65536
SEND_BUFFER_BYTES: Final = 32 * 1024
"""What the kernel keeps of what a side has not taken (it takes double the number); it would be 208 KiB."""

FLUSH_LIMIT_S: Final = 1.0
"""How long a connection that ends may take to hand over what was read for it."""

REFUSALS_LOGGED: Final = 3
"""So many refusals are logged each minute."""

_NAME_TRIES: Final = 8
_PEER_PREFIX: Final = "unix-abstract:"
_log = logging.getLogger(__name__)


class Relay:
    """Some listening sockets in front of one private one.

    Where there is no place for a connection, the oldest that has not made a call yet gives up its own; for an
    operator's, so does one of operators that is idle. Where only a call shows whether a peer is an operator,
    ``kept`` places are taken back from peers that are none.
    """

    def __init__(self, private: Path, recognise: Recognise, quota: Quota, kept: int = 0) -> None:
        self._private = str(private)
        self._recognise = recognise
        self._quota = quota
        self._kept = kept
        self._rate = Rate(limits.CONNECTION_RATE)
        self._refusals = RefusalLimit(most=REFUSALS_LOGGED)
        self._listeners: list[socket.socket] = []
        self._book: dict[str, RelayedConnection] = {}
        self._chunk = memoryview(bytearray(CHUNK_BYTES))
        self._all_ended = asyncio.Event()

    def start(self, listeners: Sequence[socket.socket]) -> None:
        """Accepts on these, in the loop that serves."""
        for listener in listeners:
            self._listeners.append(listener)
            listener.listen(BACKLOG)
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    async def stop(self) -> None:
        """Ends every connection and removes the sockets; it does not wait for a client that does not read."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
            if listener.family == socket.AF_UNIX:
                remove(Path(listener.getsockname()))
            listener.close()
        self._listeners.clear()
        for connection in tuple(self._book.values()):
            connection.close()
        while self._book:
            self._all_ended.clear()
            await self._all_ended.wait()

    def peer(self, grpc_peer: str) -> ConnectionPeer | None:
        """The peer of a connection by gRPC's name for it; None if it did not come through this relay."""
        connection = self._connection(grpc_peer)
        return None if connection is None else connection.peer

    def know(self, grpc_peer: str, caller: Caller) -> None:
        """The caller has made the first call of this connection."""
        connection = self._connection(grpc_peer)
        if connection is not None:
            connection.peer.caller = caller
            readers = [each for each in self._book.values() if each.is_readers]
            if connection.is_readers and len(readers) > self._quota.limit.total - self._kept:
                connection.abort()

    def drop(self, grpc_peer: str) -> None:
        """End its connection at once."""
        connection = self._connection(grpc_peer)
        if connection is not None:
            connection.abort()

    def call_begun(self, grpc_peer: str) -> None:
        """Its connection is not idle until all its calls have ended."""
        connection = self._connection(grpc_peer)
        if connection is not None:
            connection.calls += 1

    def call_ended(self, grpc_peer: str) -> None:
        connection = self._connection(grpc_peer)
        if connection is not None:
            connection.calls -= 1

    def rest(self, identity: str, rest_s: float) -> None:
        """Read nothing from this caller for so long: it calls more than its share."""
        for connection in self._book.values():
            caller = connection.peer.caller
            if caller is not None and caller.identity == identity:
                connection.rest(rest_s)

    def _forget(self, connection: "RelayedConnection") -> None:
        """It has ended, or gives up its place."""
        if self._book.pop(connection.name, None) is not None:
            self._quota.give_back(connection.peer.identity)
        if not self._book:
            self._all_ended.set()

    def _connection(self, grpc_peer: str) -> "RelayedConnection | None":
        return (
            self._book.get(grpc_peer.removeprefix(_PEER_PREFIX))
            if grpc_peer.startswith(_PEER_PREFIX)
            else None
        )

    def _accept(self, listener: socket.socket) -> None:
        """One at a time: between two of them whatever else is due is done."""
        try:
            accepted, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            self._refuse(listener, error, limits.pause_s(error))
            return
        accepted.setblocking(False)
        try:
            self._admit(accepted)
        except (OSError, Refusal) as error:
            accepted.close()
            self._refuse(listener, error, limits.REFUSED_PAUSE_S)

    def _admit(self, accepted: socket.socket) -> None:
        """Raises ``Refusal``, and ``OSError`` where it came to nothing."""
        peer = self._recognise(accepted)
        if self._rate.spend(peer.identity) and not peer.is_operator:
            raise Refusal(Status.RESOURCE_EXHAUSTED, f"{peer.identity} connects too often")
        self._make_place(peer)
        name, onward = self._lead_on(peer)
        self._quota.take(peer.identity)
        self._book[name] = RelayedConnection(name, peer, self._chunk, self._forget)
        self._book[name].begin(accepted, onward)

    def _refuse(self, listener: socket.socket, why: Exception, pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(pause_s, self._accept_again, listener)
        unwritten = self._refusals.admit()
        if unwritten is not None:
            before = f" ({unwritten} more before it were not logged)" if unwritten else ""
            _log.warning("connection refused: %s%s", why, before)

    def _accept_again(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _make_place(self, peer: ConnectionPeer) -> None:
        """Raises ``Refusal``."""
        obstacle = self._quota.obstacle(peer)
        if obstacle is None:
            return
        for other in self._book.values():
            gives_way = other.may_give_way and other.peer.is_operator <= peer.is_operator
            if gives_way and (other.peer.identity == peer.identity or not obstacle.is_own):
                other.abort()
                return
        raise Refusal(Status.RESOURCE_EXHAUSTED, obstacle.reason)

    def _lead_on(self, peer: ConnectionPeer) -> tuple[str, socket.socket]:
        """A socket bound to a unique name, and connected to the server. Raises ``OSError``."""
        onward = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            name = _bind(onward, peer)
            onward.connect(self._private)
        except OSError:
            onward.close()
            raise
        return name, onward


def _bind(onward: socket.socket, peer: ConnectionPeer) -> str:
    """Binds it to a name that cannot be predicted. Raises ``OSError``."""
    for _ in range(_NAME_TRIES):
        name = f"nodeagent/{secrets.token_hex(16)}/{peer.identity}"
        try:
            onward.bind(f"\0{name}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return name
    raise OSError(errno.EADDRINUSE, f"{_NAME_TRIES} random names were taken")


Forget = Callable[["RelayedConnection"], None]
"""Called, once or more, when a connection has ended or gives up its place."""


class RelayedConnection:
    """A client and the server's side of it: what one of them sends, the other is given."""

    def __init__(self, name: str, peer: ConnectionPeer, chunk: memoryview, forget: Forget) -> None:
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
