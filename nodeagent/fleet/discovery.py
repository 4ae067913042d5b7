"""Reads the list of nodes again and again: a file, or the addresses of a name.

A list that cannot be read after the start changes nothing, and is reported once: nobody stops following a
cluster for a typing error or a name server.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from nodeagent.fleet import nodes
from nodeagent.fleet.nodes import Endpoint, NodesError

DNS: Final = "dns:"
READ_EVERY_S: Final = 5.0

_log = logging.getLogger(__name__)

Listing = Callable[[], Awaitable[tuple[Endpoint, ...]]]
"""Raises ``NodesError``."""


def listing(given: str, *, tcp: bool) -> Listing:
    """The listing that ``FILE`` or ``dns:NAME`` means. Raises ``ValueError`` for what is no name, and without
    certificates.
    """
    if not given.startswith(DNS):
        return _of_file(Path(given), tcp=tcp)
    name, port = nodes.name_and_port(given.removeprefix(DNS))
    if not tcp:
        raise ValueError(f"{given}: {nodes.NEEDS_CERTIFICATES}")
    return _of_name(name, port)


async def keep_up(
    read: Listing, known: tuple[Endpoint, ...], use: Callable[[tuple[Endpoint, ...]], None]
) -> None:
    """``use`` gets each list that differs from the one before."""
    trouble = ""
    while True:
        await asyncio.sleep(READ_EVERY_S)
        try:
            found = await read()
        except NodesError as error:
            if str(error) != trouble:
                trouble = str(error)
                _log.error("the nodes stay as they are: %s", trouble)
            continue
        trouble = ""
        if found != known:
            known = found
            use(found)


def _of_file(path: Path, *, tcp: bool) -> Listing:
    async def read() -> tuple[Endpoint, ...]:
        try:
            text = await asyncio.to_thread(path.read_text)
        except (OSError, UnicodeDecodeError) as error:
            raise NodesError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        return nodes.from_text(text, str(path), tcp=tcp)

    return read


def _of_name(name: str, port: int) -> Listing:
    async def read() -> tuple[Endpoint, ...]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise NodesError(f"{DNS}{name}: {error.strerror or error}") from error
        return nodes.from_addresses(name, port, (str(place[0]) for *_, place in found))

    return read
