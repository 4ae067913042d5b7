"""Other users who call: many at once, or asking and taking nothing. Each is a process of its own."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from google.protobuf.message import Message

from nodeagent.messages.pb import fault_service_pb2

GET_NODE = "/nodeagent.v1.FaultService/GetNode"
LIST_EVENTS = "/nodeagent.v1.FaultService/ListEvents"
LIMIT_S = 120.0


@asynccontextmanager
async def crowd(
    path: Path, uid: int, method: str, count: int, request: Message | None = None
) -> AsyncIterator[tuple[int, int, str]]:
    """So many calls on one connection: (answered, refused, why the last one was). Streams stay open."""
    body = (request or fault_service_pb2.WatchRequest()).SerializeToString().hex()
    async with _running("crowd", str(path), str(uid), str(uid), method, str(count), body) as said:
        answered, refused, reason = json.loads(said)
        yield answered, refused, reason


@asynccontextmanager
async def hoarding(
    path: Path, uid: int, method: str, request: Message, *, connections: int, calls: int, window: int
) -> AsyncIterator[None]:
    """So many calls on each of so many connections; nothing of the answers is read.

    ``window`` is how many bytes of each the server may send without being asked for more.
    """
    counts = (str(connections), str(calls), str(window))
    async with _running("hoarder", str(path), str(uid), method, *counts, request.SerializeToString().hex()):
        yield


@asynccontextmanager
async def _running(module: str, *arguments: str) -> AsyncIterator[bytes]:
    """The first line that it says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", f"tests.api.access.{module}", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(LIMIT_S):
            said = await process.stdout.readline()
        assert said, f"{module} said nothing"
        yield said
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        async with asyncio.timeout(LIMIT_S):
            await process.communicate()
