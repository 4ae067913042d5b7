"""Asks one node why a device has its verdict, as ``nodeagent why`` does, for a person who looks at the page.

A few questions at once and a short time for each: pages cannot keep this process or a node busy. It asks with
the follower's own certificate, which has to be that of a reader only.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Final

from nodeagent.client import AsyncClient, ClientError
from nodeagent.fleet.follower import Connect
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.page.rows import bounded
from nodeagent.messages.pb import fault_service_pb2 as pb

LIMIT_S: Final = 3.0
"""As long as a person waits for ``nodeagent why``."""

MAX_AT_ONCE: Final = 8
MAX_LINES: Final = 2_000
MAX_LINE_CHARACTERS: Final = 4_000
MAX_DEVICE_CHARACTERS: Final = 512

Explain = Callable[[pb.WhyDeviceResponse, pb.Snapshot], Sequence[str]]
"""The lines that ``nodeagent why`` shows; they are printable."""

_REFUSALS: Final = {"NOT_FOUND": HTTPStatus.NOT_FOUND, "INVALID_ARGUMENT": HTTPStatus.BAD_REQUEST}
"""Of a node that answers, but not to this; any other error is one of the way to it."""


class NoAnswer(Exception):
    """The text is for a person."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class DeviceQuestions:
    """``connect`` makes a client for a node."""

    def __init__(self, connect: Connect, explain: Explain) -> None:
        self._connect = connect
        self._explain = explain
        self._under_way = 0

    async def why(self, endpoint: Endpoint, device: str) -> list[str]:
        """The lines for people, at most ``MAX_LINES``. Raises ``NoAnswer``."""
        if not 0 < len(device) <= MAX_DEVICE_CHARACTERS:
            raise NoAnswer(HTTPStatus.BAD_REQUEST, "name a device")
        if self._under_way >= MAX_AT_ONCE:
            raise NoAnswer(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_AT_ONCE} questions are under way already; ask again"
            )
        self._under_way += 1
        try:
            async with asyncio.timeout(LIMIT_S):
                async with self._connect(endpoint) as client:
                    response = await client.call(pb.WhyDeviceRequest(device=device))
                    current = await _snapshot(client)
                return _bounded(await asyncio.to_thread(self._explain, response, current))
        except ClientError as error:
            raise _no_answer(error) from error
        except TimeoutError as error:
            raise NoAnswer(
                HTTPStatus.GATEWAY_TIMEOUT, f"the node did not answer within {LIMIT_S:g} s"
            ) from error
        finally:
            self._under_way -= 1


async def _snapshot(client: AsyncClient) -> pb.Snapshot:
    request = pb.WatchRequest(snapshot=pb.SNAPSHOT_MODE_ALWAYS)
    async with aclosing(client.stream(request)) as responses:
        async for response in responses:
            if response.HasField("snapshot"):
                current: pb.Snapshot = response.snapshot
                return current
    raise ClientError("UNAVAILABLE", "the daemon ended the stream before it sent its state")


def _no_answer(error: ClientError) -> NoAnswer:
    if error.status in _REFUSALS:
        return NoAnswer(_REFUSALS[error.status], error.reason)
    return NoAnswer(HTTPStatus.BAD_GATEWAY, f"the node gives no answer: {error}")


def _bounded(lines: Sequence[str]) -> list[str]:
    shown = [bounded(line, MAX_LINE_CHARACTERS) for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append(f"and {len(lines) - MAX_LINES} more lines; nodeagent why shows all of them")
    return shown
