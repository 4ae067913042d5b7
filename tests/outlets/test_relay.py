"""The relay in front of the control socket: it ends when it is told to, whoever is at the other end."""

import asyncio
import socket
from pathlib import Path

from nodeagent.outlets.relay import Relay
from nodeagent.outlets.sockets import listen
from tests.outlets.stage import until

LIMIT_S = 10.0


async def test_it_ends_though_a_client_takes_nothing_of_what_is_sent_to_it(place: Path) -> None:
    sent = before = 0

    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(bytes(65536))
            sent += 65536
            await writer.drain()

    def is_full() -> bool:
        nonlocal before
        before, grown = sent, sent - before
        return sent > 0 and grown == 0

    private = place / "private.sock"
    async with await asyncio.start_unix_server(pour, private):
        relay = Relay(listen(place / "control.sock", "agent.control_socket"), private)
        await relay.start()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place / "control.sock"))
            await until(is_full)
            async with asyncio.timeout(LIMIT_S):
                await relay.stop()
    assert not (place / "control.sock").exists()
