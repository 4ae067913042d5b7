"""Stands before a gRPC server and says who connects, which gRPC cannot see itself.

gRPC shows of a unix client only the name its socket is bound to. So the relay accepts connections, asks the
kernel who is there, connects on to the server's private socket from a socket bound to an abstract name of
its own choice, and copies bytes. It counts connections, and keeps at most one chunk each way for each of
them: who takes nothing is not read for.

Nobody can pose as somebody else: the private socket lies in a directory of mode 0700, and a name counts only
while it stands in the relay's own book, bound by the relay. Nobody can take a name before it: each is random.
"""

import asyncio
import errno
import logging
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeagent.api.access import limits
from nodeagent.api.access.addresses import BACKLOG
from nodeagent.api.access.credentials import Caller, Peer, Recognise
from nodeagent.api.access.quota import Quota
from nodeagent.api.access.rate import Rate
from nodeagent.api.access.relay_connection import RelayedConnection
from nodeagent.api.access.sockets import remove
from nodeagent.api.refusal import Refusal, RefusalLimit, Status

CHUNK_BYTES: Final = 65536
REFUSALS_LOGGED: Final = 3
"""So many refusals are logged each minute."""

_NAME_TRIES: Final = 8
_PEER_PREFIX: Final = "unix-abstract:"

_log = logging.getLogger(__name__)


class Relay:
    """Some listening sockets in front of one private one.

    Where there is no place for a connection, the oldest that has not made a call yet gives up its own; for an
    operator's, so does one of operators that is idle. Where only a call shows who is an operator, ``kept``
    places are taken back from those who turn out to be none.
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
        """Ends every connection and removes the sockets; who takes nothing is not waited for."""
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

    def peer(self, grpc_peer: str) -> Peer | None:
        """Who is behind what gRPC calls the peer; None if it did not come through this relay."""
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

    def _forget(self, connection: RelayedConnection) -> None:
        """It has ended, or gives up its place."""
        if self._book.pop(connection.name, None) is not None:
            self._quota.give_back(connection.peer.identity)
        if not self._book:
            self._all_ended.set()

    def _connection(self, grpc_peer: str) -> RelayedConnection | None:
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

    def _make_place(self, peer: Peer) -> None:
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

    def _lead_on(self, peer: Peer) -> tuple[str, socket.socket]:
        """A socket bound to a name that nobody else has, and connected to the server. Raises ``OSError``."""
        onward = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            name = _bind(onward, peer)
            onward.connect(self._private)
        except OSError:
            onward.close()
            raise
        return name, onward


def _bind(onward: socket.socket, peer: Peer) -> str:
    """Binds it to a name that nobody could foresee. Raises ``OSError``."""
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
