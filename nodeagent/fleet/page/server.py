"""The connections of the page: their number, their time and their memory are bounded, whatever the other side
does.

One request a connection, or one stream. A request has a short time to arrive. A reader that takes nothing for
a while is disconnected and reported; its browser comes back by itself. It decides nothing about replies.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from nodeagent.fleet.page.answers import PageAnswers
from nodeagent.fleet.page.exchange import PageRequest

MAX_CONNECTIONS: Final = 128
"""Twice as many as there may be streams: pages that are open do not keep others out."""

MAX_HEAD_BYTES: Final = 16 * 1024
ARRIVE_LIMIT_S: Final = 5.0
"""For the handshake and the request."""

READ_LIMIT_S: Final = 15.0
"""For the other side to read what was sent last."""

SEND_BUFFER_BYTES: Final = 128 * 1024
UNSENT_BYTES: Final = 16 * 1024
"""What may wait in this process for a connection before more is made for it."""

SHUTDOWN_LIMIT_S: Final = 1.0
ACCEPT_PAUSE_S: Final = 1.0
END_OF_HEAD: Final = b"\r\n\r\n"

_BROKEN: Final = (OSError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
"""How connections end that the other side does not use as it should."""

_log = logging.getLogger(__name__)


class PageServer:
    """``tls`` gives the context for a new connection, None for none."""

    def __init__(self, answers: PageAnswers, tls: Callable[[], ssl.SSLContext] | None) -> None:
        self._answers = answers
        self._tls = tls
        # The oldest first; true of those that have a stream.
        self._open: dict[asyncio.Task[None], bool] = {}
        self._last_refusal = ("", "")

    async def run(self, listeners: list[socket.socket]) -> None:
        """Until it is cancelled. The listeners are closed then."""
        try:
            async with asyncio.TaskGroup() as group:
                for listener in listeners:
                    group.create_task(self._accept(listener))
        finally:
            for listener in listeners:
                listener.close()
            for task in tuple(self._open):
                task.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError as error:  # no file is free, for example
                _log.error("page: no connection can be accepted: %s", error)
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            if not self._has_place():
                accepted.close()
                continue
            task = asyncio.create_task(self._serve(accepted, str(peer[0])))
            self._open[task] = False
            task.add_done_callback(self._ended)

    def _has_place(self) -> bool:
        """Where all are taken, the oldest ends that has no stream."""
        if len(self._open) < MAX_CONNECTIONS:
            return True
        oldest = next((task for task, has_stream in self._open.items() if not has_stream), None)
        if oldest is not None:
            oldest.cancel()
            del self._open[oldest]
        return oldest is not None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("page: a connection failed", exc_info=error)

    async def _serve(self, accepted: socket.socket, peer: str) -> None:
        try:
            reader, writer = await self._opened(accepted)
        except _BROKEN as error:
            self._report_refusal(peer, error)
            return
        try:
            async with asyncio.timeout(ARRIVE_LIMIT_S):
                request = PageRequest(await reader.readuntil(END_OF_HEAD))
            await self._reply(request, reader, writer, peer)
            writer.close()
            async with asyncio.timeout(ARRIVE_LIMIT_S):
                await writer.wait_closed()
        except _BROKEN as error:
            _log.debug("page: %s: %r", peer, error)
        finally:
            _abort(writer)

    def _report_refusal(self, peer: str, error: Exception) -> None:
        """Once for the same as before: the other side may try again and again."""
        refusal = (peer, str(getattr(error, "reason", "") or error))
        if isinstance(error, ssl.SSLError) and refusal != self._last_refusal:
            self._last_refusal = refusal
            _log.info("page: no TLS with %s: %s", *refusal)

    async def _opened(self, accepted: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises ``OSError``, also where the handshake fails or takes too long."""
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MAX_HEAD_BYTES, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        context = None if self._tls is None else self._tls()
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            accepted,
            ssl=context,
            ssl_handshake_timeout=None if context is None else ARRIVE_LIMIT_S,
            ssl_shutdown_timeout=None if context is None else SHUTDOWN_LIMIT_S,
        )
        transport.set_write_buffer_limits(UNSENT_BYTES)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _reply(
        self, request: PageRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str
    ) -> None:
        if request.refusal is not None:
            await _send(writer, request.refusal)
            return
        reply = await self._answers.answer(request)
        if reply.stream is None:
            await _send(writer, request.written(reply))
            return
        async with aclosing(reply.stream):
            await self._follow(request.written(reply), reply.stream, reader, writer, peer)

    async def _follow(
        self,
        begin: bytes,
        stream: AsyncGenerator[bytes, None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: str,
    ) -> None:
        """Until the other side closes the connection, or does not read."""
        current = asyncio.current_task()
        if current not in self._open:
            return
        self._open[current] = True
        who = _who(writer, peer)
        _log.info("page: opened by %s", who)
        sending = asyncio.create_task(_send_all(begin, stream, writer))
        closing = asyncio.create_task(_closed_by_the_other_side(reader))
        try:
            await asyncio.wait((sending, closing), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        except TimeoutError:
            _log.warning(
                "page: %s read nothing for %g s and is disconnected; it gets what it missed when it is back",
                who,
                READ_LIMIT_S,
            )
            raise
        finally:
            for task in (sending, closing):
                task.cancel()
            await asyncio.gather(sending, closing, return_exceptions=True)


def _abort(writer: asyncio.StreamWriter) -> None:
    """At once. A TLS transport that is closing ends by itself after ``SHUTDOWN_LIMIT_S``; that of Python 3.11
    fails where it is aborted then (sslproto.py).
    """
    is_tls = writer.get_extra_info("sslcontext") is not None
    if not (is_tls and writer.is_closing()):
        writer.transport.abort()


def _who(writer: asyncio.StreamWriter, peer: str) -> str:
    """The address, and the common names of the certificate where there is one."""
    certificate = writer.get_extra_info("peercert") or {}
    pairs = (pair for part in certificate.get("subject", ()) for pair in part)
    names = ", ".join(value for key, value in pairs if key == "commonName")
    return f"{names} at {peer}" if names else peer


async def _send_all(begin: bytes, stream: AsyncGenerator[bytes, None], writer: asyncio.StreamWriter) -> None:
    await _send(writer, begin)
    async for chunk in stream:
        await _send(writer, chunk)


async def _closed_by_the_other_side(reader: asyncio.StreamReader) -> None:
    """Whatever else it sends is left aside."""
    while await reader.read(MAX_HEAD_BYTES):
        pass


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Raises ``TimeoutError`` if the other side takes none of it for ``READ_LIMIT_S``."""
    for start in range(0, len(data), UNSENT_BYTES):
        async with asyncio.timeout(READ_LIMIT_S):
            writer.write(data[start : start + UNSENT_BYTES])
            await writer.drain()
