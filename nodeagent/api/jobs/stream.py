"""Lines on one connection: each read within bounds, none written to a supervisor that does not read."""

import asyncio
from collections.abc import Iterable
from typing import Final

from nodeagent.api.access.quota import Rate
from nodeagent.api.jobs import limits
from nodeagent.api.refusal import Refusal, Status
from nodeagent.job.codec import CodecError
from nodeagent.job.lines import MAX_LINE_BYTES, FromDaemon, Line, ToOwner, decode, encode

FLUSH_LIMIT_S: Final = 1.0


class ConnectionEnded(Exception):
    """The other side has ended the connection, or takes nothing."""


class LineStream:
    """The lines of one supervisor. ``rate`` counts those of all; it knows this one as ``identity``."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rate: Rate, identity: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._rate = rate
        self._identity = identity

    async def next(self) -> Line:
        """Raises ``ConnectionEnded``, and ``Refusal`` if it is no line. A supervisor that is too fast is not
        read for a while.
        """
        ahead_s = self._rate.spend(self._identity)
        if ahead_s:
            await asyncio.sleep(ahead_s)
        try:
            return decode(await self._reader.readuntil())
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ConnectionEnded from error
        except asyncio.LimitOverrunError as error:
            too_long = f"a line has at most {MAX_LINE_BYTES} bytes"
            raise Refusal(Status.INVALID_ARGUMENT, too_long) from error
        except CodecError as error:
            raise Refusal(Status.INVALID_ARGUMENT, str(error)) from error

    def write(self, line: FromDaemon) -> None:
        """Never waits. Raises ``Ended`` where what was written before is not read."""
        if self._writer.transport.get_write_buffer_size() > limits.MAX_UNREAD_BYTES:
            self._writer.transport.abort()
            raise ConnectionEnded
        self._writer.write(encode(line))

    async def write_all(self, lines: Iterable[ToOwner], limit_s: float) -> None:
        """Waits for the reader. Raises ``ConnectionEnded`` where it has not taken them within the time."""
        try:
            async with asyncio.timeout(limit_s):
                for line in lines:
                    self._writer.write(encode(line))
                    await self._writer.drain()
        except (TimeoutError, OSError) as error:
            self._writer.transport.abort()
            raise ConnectionEnded from error

    def close(self) -> None:
        """What was written is still given, for a moment."""
        self._writer.close()
        asyncio.get_running_loop().call_later(FLUSH_LIMIT_S, self._writer.transport.abort)

    def abort(self) -> None:
        self._writer.transport.abort()
