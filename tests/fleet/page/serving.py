"""The page of a few nodes on a port of loopback, and a client that writes requests byte by byte."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.page.listening import PageAddress
from nodeagent.fleet.page.page import Page
from nodeagent.fleet.state import NodeStates
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.waiting import WAIT_LIMIT_S

LOCAL: Final = PageAddress(host="127.0.0.1", port=0)


@dataclass(frozen=True, slots=True)
class Received:
    """What came until the server closed the connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """An open stream of events."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._reader = reader

    async def close(self) -> None:
        """Until the server has seen it: it closes its side too."""
        self.writer.write_eof()
        async with asyncio.timeout(WAIT_LIMIT_S):
            await self._reader.read()

    async def head(self) -> bytes:
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self._reader.readuntil(b"\r\n\r\n")

    async def event(self) -> tuple[str, str, Any]:
        """Id, kind and data of the next."""
        async with asyncio.timeout(WAIT_LIMIT_S):
            while (fields := _fields(await self._reader.readuntil(b"\n\n"))) and "data" not in fields:
                pass
        return fields.get("id", ""), fields["event"], json.loads(fields["data"])


def _fields(event: bytes) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in event.decode().splitlines() if line)


class Site:
    """A page that is served. Open it with ``serving``."""

    def __init__(self, page: Page, tls: ssl.SSLContext | None) -> None:
        self.url = page.url
        self.port = int(page.url.rstrip("/").rpartition(":")[2])
        self._tls = tls

    async def get(self, path: str, *headers: str, method: str = "GET", host: str = "localhost") -> Received:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
        return await self.ask("\r\n".join(lines).encode())

    async def ask(self, request: bytes) -> Received:
        reader, writer = await self.connect()
        try:
            writer.write(request)
            async with asyncio.timeout(WAIT_LIMIT_S):
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        first, *others = head.decode().split("\r\n")
        return Received(int(first.split(" ")[1]), dict(line.split(": ", 1) for line in others), body)

    @asynccontextmanager
    async def stream(self, *headers: str) -> AsyncIterator[Stream]:
        reader, writer = await self.connect()
        writer.write("\r\n".join(("GET /events HTTP/1.1", "Host: localhost", *headers, "", "")).encode())
        try:
            yield Stream(reader, writer)
        finally:
            writer.transport.abort()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self._tls, limit=1 << 24)


def lines_of(response: pb.WhyDeviceResponse, current: pb.Snapshot) -> Sequence[str]:
    """In place of those that the command makes."""
    return [f"{response.device.name} of {len(current.devices)}"]


@asynccontextmanager
async def serving(
    node_states: NodeStates, address: PageAddress = LOCAL, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """``tls`` is the client's side."""
    page = Page(address, node_states, None, lines_of)
    running = asyncio.create_task(page.run())
    try:
        yield Site(page, tls)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def endpoints(folder: Path, *names: str) -> Iterator[Endpoint]:
    """On sockets where nothing listens."""
    for name in names:
        yield Endpoint(name=name, address=str(folder / f"{name}.sock"))
