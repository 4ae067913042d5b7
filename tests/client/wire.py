"""A wire between a client and a server that can die without a word: neither hears that the other is gone."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Self


class Wire:
    """Listens at ``path`` and connects on to ``server``."""

    def __init__(self, path: Path, server: Path) -> None:
        self.path = path
        self._server_path = server
        self._copying: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []
        self._listening: asyncio.Server | None = None

    @property
    def is_connected(self) -> bool:
        """Whether both ends of any connection are still there."""
        return bool(self._copying)

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._connected, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listening is not None:
            self._listening.close()
        self.cut_silently()
        for end in self._ends:
            end.close()

    def cut_silently(self) -> None:
        """Nothing passes over the connections there are any more; new ones are as good as ever."""
        for task in self._copying:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward_writer = await asyncio.open_unix_connection(self._server_path)
        self._ends += [writer, onward_writer]
        for source, sink in ((reader, onward_writer), (onward_reader, writer)):
            task = asyncio.create_task(_copy(source, sink))
            self._copying.add(task)
            task.add_done_callback(self._copying.discard)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Who closes a connection with something unread in it resets it: that is an end, too."""
    with suppress(ConnectionError):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    sink.close()
