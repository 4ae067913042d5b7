"""Over TCP nobody is known before the first call: who connects and says nothing gives way, and soon ends."""

import asyncio
import socket
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from nodeagent.api.access import limits
from nodeagent.api.access.limits import Limit
from tests.api.access.tcp import READ, SERVER_NAMES, answer, client, configured, opened
from tests.api.certificates import Authority
from tests.api.stage import Stage

LIMIT_S = 10.0
FEW = Limit(what="connections", each=3, total=4, kept=0)


async def half_open(stage: Stage, count: int) -> list[socket.socket]:
    """Peers that connect and say nothing."""
    return [
        await asyncio.to_thread(socket.create_connection, ("127.0.0.1", stage.server.tcp_port), LIMIT_S)
        for _ in range(count)
    ]


async def test_who_connects_and_says_nothing_is_let_go_of(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_LIMIT_S", 0.2)
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    async with opened(place, configured(authority, server)) as stage:
        (peer,) = await half_open(stage, 1)
        with peer:
            assert await asyncio.to_thread(peer.recv, 1) == b""


async def test_who_finishes_tls_and_says_nothing_then_is_let_go_of_too(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_LIMIT_S", 1.0)
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    own = authority.issue("scheduler.example.org")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(own.certificate, own.key)
    context.set_alpn_protocols(["h2"])
    async with opened(place, configured(authority, server)) as stage:
        (peer,) = await half_open(stage, 1)
        with await asyncio.to_thread(context.wrap_socket, peer, server_hostname="127.0.0.1") as speaking:
            assert await asyncio.to_thread(to_the_end, speaking) > 0


async def test_connections_that_never_call_give_way_to_one_that_does(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TCP_CONNECTIONS", FEW)
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader = authority.issue("scheduler.example.org")
    async with opened(place, configured(authority, server)) as stage:
        peers = await half_open(stage, 50)
        before = descriptors()
        assert await answer(stage, authority, reader, READ) == "OK"
        assert descriptors() <= before + FEW.total * 3
        for peer in peers:
            peer.close()


async def test_one_address_has_so_many_connections_with_calls(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TCP_CONNECTIONS", FEW)
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader = authority.issue("scheduler.example.org")
    async with opened(place, configured(authority, server)) as stage, AsyncExitStack() as clients:
        for _ in range(FEW.each):
            connected = await clients.enter_async_context(client(stage, authority, reader))
            await connected.call(READ)
        assert (await answer(stage, authority, reader, READ)).startswith("UNAVAILABLE")


async def test_when_readers_have_their_connections_an_operator_still_gets_one(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TCP_CONNECTIONS", Limit(what="connections", each=9, total=3, kept=1))
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader, operator = authority.issue("scheduler.example.org"), authority.issue("operator.example.org")
    async with opened(place, configured(authority, server)) as stage, AsyncExitStack() as clients:
        for _ in range(2):
            connected = await clients.enter_async_context(client(stage, authority, reader))
            await connected.call(READ)
        assert (await answer(stage, authority, reader, READ)).startswith("UNAVAILABLE")
        assert await answer(stage, authority, operator, READ) == "OK"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def to_the_end(peer: ssl.SSLSocket) -> int:
    """How many bytes it said before it ended."""
    said = 0
    while chunk := peer.recv(4096):
        said += len(chunk)
    return said
