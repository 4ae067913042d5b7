"""The relay in front of a server: who is there, how many may be, and what is kept for who takes nothing."""

import asyncio
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeagent.api.access.credentials import (
    Caller,
    ConnectionPeer,
    Recognise,
    Role,
    control_peer,
    public_peer,
)
from nodeagent.api.access.limits import Limit
from nodeagent.api.access.quota import Quota
from nodeagent.api.access.relay import Relay
from nodeagent.api.access.sockets import bound
from tests.waiting import until

LIMIT_S = 10.0
ME = f"uid:{os.geteuid()}"
FEW = Limit(what="connections", each=4, total=8, kept=2)
MUCH = 1 << 20
"""More than the kernel and the relay keep of a connection."""


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Server:
    """Behind the relay: knows the name of each connection, and does with it what the test wants."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.streams: list[Stream] = []

    async def accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.names.append(writer.get_extra_info("peername"))
        self.streams.append((reader, writer))

    async def reached(self, count: int) -> None:
        await until(lambda: len(self.names) == count)


class Front:
    """The relay, its socket and its server."""

    def __init__(self, place: Path, limit: Limit) -> None:
        self.path = place / "front.sock"
        self.private = place / "private.sock"
        self.server = Server()
        self.quota = Quota(limit)
        self._recognise: Recognise = control_peer
        self.relay = Relay(self.private, self.recognise, self.quota)
        self.peers: list[ConnectionPeer] = []
        self.clients: list[Stream] = []

    def recognise_as(self, recognise: Recognise) -> None:
        self._recognise = recognise

    def recognise(self, accepted: socket.socket) -> ConnectionPeer:
        peer = self._recognise(accepted)
        self.peers.append(peer)
        return peer

    async def connect(self) -> Stream:
        self.clients.append(await asyncio.open_unix_connection(self.path))
        return self.clients[-1]

    def name(self, number: int) -> str:
        """Of the server's ``number``-th connection, as gRPC writes it."""
        return f"unix-abstract:{self.server.names[number][1:].decode()}"

    def peer_of(self, number: int) -> ConnectionPeer | None:
        """Whom the relay names behind it."""
        return self.relay.peer(self.name(number))

    def calls(self, number: int, role: Role = Role.OPERATOR) -> None:
        """It begins a call, as its first one."""
        is_operator = role is Role.OPERATOR
        caller = Caller(identity=ME, role=role, who="uid 0", is_operator=is_operator)
        self.relay.know(self.name(number), caller)
        self.relay.call_begun(self.name(number))


@asynccontextmanager
async def opened(place: Path, limit: Limit = FEW) -> AsyncIterator[Front]:
    front = Front(place, limit)
    async with await asyncio.start_unix_server(front.server.accepted, front.private):
        front.relay.start([bound(front.path, "agent.control_socket")])
        try:
            yield front
        finally:
            async with asyncio.timeout(LIMIT_S):
                await front.relay.stop()
            ends = [writer for _, writer in (*front.server.streams, *front.clients)]
            for end in ends:
                end.transport.abort()
            await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)


async def test_what_one_side_says_the_other_hears_and_the_end_as_well(place: Path) -> None:
    async with opened(place) as front:
        reader, writer = await front.connect()
        await front.server.reached(1)
        server_reader, server_writer = front.server.streams[0]
        writer.write(b"question" * MUCH)
        server_writer.write(b"answer")
        assert await server_reader.readexactly(8 * MUCH) == b"question" * MUCH
        assert await reader.readexactly(6) == b"answer"
        server_writer.write(b"last words")
        server_writer.close()
        assert await reader.read() == b"last words"
        writer.close()
        await until(lambda: front.quota.taken == 0)


async def test_what_is_said_before_the_relay_has_accepted_is_heard_whole(place: Path) -> None:
    async with opened(place) as front:
        said = bytes(range(256)) * 256
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            client.connect(str(front.path))
            sent = client.send(said)
            await front.server.reached(1)
            async with asyncio.timeout(LIMIT_S):
                assert await front.server.streams[0][0].readexactly(sent) == said[:sent]


async def test_the_server_is_told_the_user_behind_each_connection_while_it_lasts(place: Path) -> None:
    async with opened(place) as front:
        _, writer = await front.connect()
        await front.server.reached(1)
        peer = front.peer_of(0)
        assert peer is not None
        assert peer.identity == ME
        writer.close()
        await until(lambda: front.peer_of(0) is None)
        assert front.relay.peer(f"unix-abstract:nodeagent/{'0' * 32}/{ME}") is None
        assert front.relay.peer("ipv4:127.0.0.1:9") is None


async def test_nobody_can_foresee_the_name_of_the_next_connection(place: Path) -> None:
    """Any user reads the names there are in /proc/net/unix: whoever knew the next one could take it first."""
    async with opened(place) as front:
        for _ in range(3):
            await front.connect()
        await front.server.reached(3)
    names = [name.decode() for name in front.server.names]
    parts = [re.fullmatch(rf"\0nodeagent/([0-9a-f]{{32}})/{ME}", name) for name in names]
    assert all(parts)
    assert len({part[1] for part in parts if part}) == 3


async def test_a_name_that_is_taken_costs_another_try(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = "0" * 32, "f" * 32
    drawn = [taken, taken, free]
    monkeypatch.setattr(secrets, "token_hex", lambda _: drawn.pop(0))
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind(f"\0nodeagent/{taken}/{ME}")
        async with opened(place) as front:
            await front.connect()
            await front.server.reached(1)
    assert front.server.names == [f"\0nodeagent/{free}/{ME}".encode()]


async def test_who_takes_nothing_is_not_read_for(place: Path) -> None:
    async with opened(place) as front:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(front.path))
        await front.server.reached(1)
        _, pouring = front.server.streams[0]
        sent = await pour(pouring)
        client.close()
    assert 0 < sent < MUCH


async def test_a_server_that_takes_nothing_holds_up_its_client(place: Path) -> None:
    async with opened(place) as front:
        _, writer = await front.connect()
        await front.server.reached(1)
        front.server.streams[0][0]._transport.pause_reading()  # type: ignore[attr-defined]
        sent = await pour(writer)
    assert 0 < sent < MUCH


async def test_it_ends_though_a_client_takes_nothing_of_what_is_sent_to_it(place: Path) -> None:
    async with opened(place) as front:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(front.path))
        await front.server.reached(1)
        await pour(front.server.streams[0][1])
        async with asyncio.timeout(LIMIT_S):
            await front.relay.stop()
        client.close()
        assert not front.path.exists()


async def test_one_user_has_so_many_connections_and_the_next_is_closed_at_once(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(place) as front:
        kept = [await front.connect() for _ in range(FEW.each)]
        await front.server.reached(FEW.each)
        for number in range(FEW.each):
            front.calls(number)
        reader, _ = await front.connect()
        assert await reader.read() == b""
        assert front.quota.taken == FEW.each
        assert f"{ME} has 4 connections, as many as one identity may have" in caplog.text
        kept[0][1].close()
        await until(lambda: front.quota.taken == FEW.each - 1)
        await front.connect()
        await front.server.reached(FEW.each + 1)


async def test_the_oldest_connection_without_a_call_gives_its_place_to_the_next(place: Path) -> None:
    async with opened(place) as front:
        await front.connect()
        await front.server.reached(1)
        others = [await front.connect() for _ in range(FEW.each - 1)]
        await front.server.reached(FEW.each)
        front.calls(0)
        await front.connect()
        await front.server.reached(FEW.each + 1)
        assert await others[0][0].read() == b""
        assert [front.peer_of(number) is not None for number in range(FEW.each + 1)] == [
            True,
            False,
            True,
            True,
            True,
        ]


async def test_the_oldest_idle_connection_of_operators_gives_its_place_to_an_operator(place: Path) -> None:
    """A script that leaks connections does not lock the next command out."""
    async with opened(place) as front:
        leaked = []
        for number in range(FEW.each):
            leaked.append(await front.connect())
            await front.server.reached(number + 1)
            front.calls(number)
        for number in (1, 2):
            front.relay.call_ended(front.name(number))
        await front.connect()
        await front.server.reached(FEW.each + 1)
        assert await leaked[1][0].read() == b""
        assert [front.peer_of(number) is not None for number in range(FEW.each + 1)] == [
            True,
            False,
            True,
            True,
            True,
        ]


async def test_a_reader_who_has_called_keeps_its_place_while_it_is_idle(place: Path) -> None:
    async with opened(place) as front:
        front.recognise_as(public_peer)
        for number in range(FEW.each):
            await front.connect()
            await front.server.reached(number + 1)
            front.calls(number, Role.READER)
            front.relay.call_ended(front.name(number))
        reader, _ = await front.connect()
        assert await reader.read() == b""
        assert front.quota.taken == FEW.each


async def test_a_caller_that_is_to_rest_is_not_read_from_for_a_while(place: Path) -> None:
    async with opened(place) as front:
        reader, writer = await front.connect()
        await front.server.reached(1)
        server_reader, server_writer = front.server.streams[0]
        front.peers[0].caller = Caller(identity=ME, role=Role.READER, who="uid 0")
        front.relay.rest(ME, 0.5)
        writer.write(b"call")
        server_writer.write(b"answer")
        assert await reader.readexactly(6) == b"answer"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await server_reader.readexactly(4)
        async with asyncio.timeout(LIMIT_S):
            assert await server_reader.readexactly(4) == b"call"


async def pour(writer: asyncio.StreamWriter) -> int:
    """Sends until nothing is taken any more: how many bytes that was."""
    sent = 0
    while not (left := writer.transport.get_write_buffer_size()):
        writer.write(bytes(4096))
        sent += 4096
        await asyncio.sleep(0)
        if writer.transport.get_write_buffer_size():
            # The relay may only not have had its turn yet.
            await asyncio.sleep(0.05)
    return sent - left
