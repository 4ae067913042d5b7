"""The relay on the control socket: tells the gRPC server who connects, which gRPC cannot see itself.

gRPC shows of a unix client only the name its socket is bound to. So the relay accepts on
``control.sock``, asks the kernel who is there (SO_PEERCRED, SO_PEERGROUPS), binds a socket to an
abstract name that holds it, connects on to the server's private socket, and copies bytes.

Nobody can pose as somebody else: the private socket lies in a directory of mode 0700, and a name
counts only while it stands in the relay's own book, bound by the relay (the kernel binds a name once).
"""

import asyncio
import itertools
import logging
import secrets
import socket
import struct
from pathlib import Path

from nodeagent.outlets.credentials import PeerCredentials
from nodeagent.outlets.sockets import remove

MAX_CONNECTIONS = 128
FLUSH_LIMIT_S = 1.0

_CHUNK_BYTES = 65536
_SO_PEERGROUPS = 59
_MAX_OPTION_BYTES = 1024
_PEER_PREFIX = "unix-abstract:"

_log = logging.getLogger(__name__)


class Relay:
    """One listening socket in front of one private socket. Start it in the loop that serves."""

    def __init__(
        self, listener: socket.socket, private: Path, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self._listener = listener
        self._private = private
        self._max_connections = max_connections
        self._secret = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._book: dict[str, PeerCredentials] = {}
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._accepted, sock=self._listener)

    async def stop(self) -> None:
        """Ends every connection and removes the socket; who takes nothing is not waited for."""
        path = Path(self._listener.getsockname())
        if self._server is not None:
            self._server.close()
        self._listener.close()
        remove(path)
        for writer in self._open.values():
            writer.close()
        if self._open:
            await asyncio.wait(tuple(self._open), timeout=FLUSH_LIMIT_S)
        for writer in self._open.values():
            writer.transport.abort()
        if self._open:
            await asyncio.wait(tuple(self._open))

    def peer(self, grpc_peer: str) -> PeerCredentials | None:
        """Who is behind what gRPC calls the peer; None if it did not come through this relay."""
        return (
            self._book.get(grpc_peer.removeprefix(_PEER_PREFIX))
            if grpc_peer.startswith(_PEER_PREFIX)
            else None
        )

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= self._max_connections:
            _log.warning("control socket: refused a connection beyond %d", self._max_connections)
            writer.close()
            return
        self._open[task] = writer
        try:
            await self._serve(reader, writer)
        except OSError as error:
            _log.info("control socket: a connection ended: %s", error)
        finally:
            del self._open[task]
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = peer_credentials(writer.get_extra_info("socket"))
        name = f"nodeagent/{self._secret}/{next(self._numbers)}/uid={peer.uid}/gid={peer.gid}/pid={peer.pid}"
        onward = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            onward.bind(f"\0{name}")
            self._book[name] = peer
            await asyncio.get_running_loop().sock_connect(onward, str(self._private))
            server_reader, server_writer = await asyncio.open_unix_connection(sock=onward)
            try:
                async with asyncio.TaskGroup() as both_ways:
                    both_ways.create_task(_copy(reader, server_writer))
                    both_ways.create_task(_copy(server_reader, writer))
            except* OSError as ended:
                _log.debug("control socket: %s went away: %s", name, ended.exceptions[0])
            finally:
                server_writer.close()
        finally:
            self._book.pop(name, None)
            onward.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copies until the source ends, then ends the sink: the other way then ends by itself."""
    while chunk := await source.read(_CHUNK_BYTES):
        sink.write(chunk)
        await sink.drain()
    sink.close()


def peer_credentials(connection: socket.socket) -> PeerCredentials:
    """Asks the kernel who connected. Raises ``OSError`` if it does not say."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, gid = struct.unpack("3i", raw)
    groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_OPTION_BYTES)
    count = len(groups) // struct.calcsize("I")
    return PeerCredentials(pid=pid, uid=uid, gid=gid, groups=struct.unpack(f"{count}I", groups))
